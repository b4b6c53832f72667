#include <vector>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Limit on the files of one registration. A range over mappings of several files is rare.
constexpr std::size_t kMaxPieces = 1024;
constexpr unsigned kRegistrationFlags =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

void release(Thread& thread, std::uint64_t bytes) {
  thread.session.quota.refundPinned(bytes);
  discount(thread.session.figures.pinned, bytes);
}

/// Ends the driver's registration of claimed memory. The registration may already have ended with
/// its context. If the driver refuses for another reason, the GPU may still access the memory, so
/// the mapping stays.
CUresult unregister(Thread& thread, std::uint64_t address) {
  SharedMemory& shared = thread.session.shared;
  thread.passTicket();  // the driver waits here for copies that use the memory
  const CUresult status = thread.driver.cuMemHostUnregister(reinterpret_cast<void*>(address));
  const bool ended = status == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ||
                     status == CUDA_ERROR_INVALID_VALUE || shared.outlived(address);
  if (status != CUDA_SUCCESS && !ended) return shared.keep(address), status;
  return CUDA_SUCCESS;
}

/// Maps the pieces that the client sent. Charged before they are mapped.
CUresult mapPieces(Thread& thread, std::span<const SharedMemory::Piece> pieces) {
  for (const SharedMemory::Piece& piece : pieces) {
    if (!thread.session.pinnedFits(piece.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (thread.session.shared.mapPiece(piece)) continue;
    release(thread, piece.bytes);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  return CUDA_SUCCESS;
}

}  // namespace

/// The client has allocated the memory. The worker maps it at the same address and registers it
/// with the driver, so that it is pinned.
CUresult cuMemHostAlloc(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto id = in.get<std::uint64_t>();
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (!shared.map(id, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!thread.session.pinnedFits(bytes)) return shared.unmap(address), CUDA_ERROR_OUT_OF_MEMORY;
  const unsigned registration =
      CU_MEMHOSTREGISTER_DEVICEMAP |
      (flags & CU_MEMHOSTALLOC_PORTABLE ? CU_MEMHOSTREGISTER_PORTABLE : 0);
  const CUresult status =
      thread.driver.cuMemHostRegister_v2(reinterpret_cast<void*>(address), bytes, registration);
  if (status != CUDA_SUCCESS) return release(thread, shared.unmap(address)), status;
  shared.registered(address, thread.owner());
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (!shared.window.contains(address, 1) || !shared.claim(address))
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = unregister(thread, address);
  if (status == CUDA_SUCCESS) release(thread, shared.unmap(address));
  return status;
}

/// Memory of the program's own: pieces of files, mapped at the program's addresses.
CUresult cuMemHostRegister_v2(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  const auto flags = in.get<unsigned>();
  const auto sent = in.getArray<SharedMemory::Piece>(kMaxPieces);
  if (!in.finished()) return thread.refuseFrame();
  const std::vector<SharedMemory::Piece> pieces(sent.begin(), sent.end());
  if ((flags & ~kRegistrationFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  SharedMemory& shared = thread.session.shared;
  CUresult status = mapPieces(thread, pieces);
  if (status != CUDA_SUCCESS) return release(thread, shared.unmapUnused()), status;
  const bool readOnly = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  if (!shared.addRegistration(address, bytes, readOnly))
    return release(thread, shared.unmapUnused()), CUDA_ERROR_INVALID_VALUE;
  status = thread.driver.cuMemHostRegister_v2(reinterpret_cast<void*>(address), bytes,
                                              flags | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (status != CUDA_SUCCESS) return release(thread, shared.dropRegistration(address)), status;
  shared.registered(address, thread.owner());
  shared.keep(address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (shared.window.contains(address, 1) || !shared.claim(address)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = unregister(thread, address);
  if (status == CUDA_SUCCESS) release(thread, shared.dropRegistration(address));
  return status;
}

}  // namespace worker
