// Managed memory that moves. Its pages lie with the GPU or with the program; the client tells which
// to copy. A client that lies gets wrong content of its own memory.
#include "native/worker/session/managed_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "native/worker/session/in_context.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using wire::ManagedPlace;
using Allocation = ManagedMemory::Allocation;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool contains(const Allocation& memory, const wire::AddressRange& range) {
  return range.begin >= memory.address && range.begin <= range.end &&
         range.end - memory.address <= memory.bytes;
}

void refundPinned(Thread& thread, std::uint64_t bytes) {
  thread.session.quota.refundPinned(bytes);
  discount(thread.session.figures.pinned, bytes);
}

/// Maps the file where the system likes, and pins it.
CUresult pin(Thread& thread, Allocation& memory, int file) {
  void* pages = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status =
      thread.driver.cuMemHostRegister_v2(pages, memory.bytes, CU_MEMHOSTREGISTER_PORTABLE);
  if (status != CUDA_SUCCESS) return munmap(pages, memory.bytes), status;
  memory.pages = static_cast<std::byte*>(pages);
  return CUDA_SUCCESS;
}

/// The GPU reaches the program's own pages, at the same address.
CUresult placeInHostMemory(Thread& thread, const Allocation& memory) {
  SharedMemory& shared = thread.session.shared;
  if (!shared.mapAside(memory.address, memory.bytes, memory.pages)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemHostRegister_v2(
      pointer(memory.address), memory.bytes,
      CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
  if (status != CUDA_SUCCESS)
    shared.unmapAside(memory.address, wire::managedAddresses(memory.bytes));
  return status;
}

CUresult leaveGpu(Thread& thread, Allocation& memory) {
  const CUresult status = memory.gpu.leave(thread.driver, thread.session.quota);
  if (memory.gpu.lost())
    thread.session.fail("the address of the program's managed memory is taken in the worker");
  return status;
}

CUresult placeOnGpu(Thread& thread, Allocation& memory) {
  Session& session = thread.session;
  const CUresult status =
      memory.gpu.take(thread.driver, session.quota, memory.address, memory.bytes, memory.device);
  if (status == CUDA_SUCCESS)
    memory.stream = session.managed.openStream(thread.driver, session.streams, memory.context);
  if (status == CUDA_SUCCESS && memory.stream != nullptr) return CUDA_SUCCESS;
  leaveGpu(thread, memory);
  return status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status;
}

/// Host memory is a correct place, too, if the driver has none of the addresses.
CUresult place(Thread& thread, Allocation& memory, bool pinned) {
  if (memory.place != ManagedPlace::none) return CUDA_SUCCESS;
  const InContext current(thread.driver, memory.context);
  if (current.status() != CUDA_SUCCESS) return current.status();
  // what an earlier attempt left
  CUresult status = leaveGpu(thread, memory);
  if (status != CUDA_SUCCESS) return status;
  if (!pinned) {
    status = placeOnGpu(thread, memory);
    if (status == CUDA_SUCCESS) return memory.place = ManagedPlace::gpu, status;
    if (!memory.gpu.empty()) return status;
  }
  status = placeInHostMemory(thread, memory);
  if (status == CUDA_SUCCESS) memory.place = ManagedPlace::pinned;
  return status;
}

/// Calls `copy` and waits for the copies in the allocation's stream. Call it under the allocation's
/// mutex, which keeps the context alive.
CUresult move(Thread& thread, const Allocation& memory, const std::function<CUresult()>& copy) {
  if (memory.place != ManagedPlace::gpu) return CUDA_ERROR_INVALID_VALUE;
  const InContext current(thread.driver, memory.context);
  if (current.status() != CUDA_SUCCESS) return current.status();
  const CUresult status = copy();
  const CUresult waited = thread.driver.cuStreamSynchronize(memory.stream);
  return status != CUDA_SUCCESS ? status : waited;
}

/// Waits for the GPU, while other threads may move memory.
void awaitGpu(Thread& thread, CUcontext context) {
  thread.passTicket(context);
  const InContext current(thread.driver, context);
  if (current.status() == CUDA_SUCCESS) thread.session.memory.await(context);
}

/// A registration ends with its context, or by an earlier attempt.
CUresult unregister(Thread& thread, const Allocation& memory, void* pages) {
  const CUresult status = thread.driver.cuMemHostUnregister(pages);
  const bool ended = memory.context == nullptr || status == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return ended ? CUDA_SUCCESS : status;
}

/// Ends the driver's use of the pages and addresses. If the driver refuses, the GPU may still use
/// them. The GPU's memory ends last: until then, pages can be brought back.
CUresult endUse(Thread& thread, Allocation& memory) {
  const InContext current(thread.driver, memory.context);
  CUresult status = CUDA_SUCCESS;
  if (memory.place == ManagedPlace::pinned)
    status = unregister(thread, memory, pointer(memory.address));
  if (status == CUDA_SUCCESS) status = unregister(thread, memory, memory.pages);
  return status == CUDA_SUCCESS ? leaveGpu(thread, memory) : status;
}

}  // namespace

/// The client has made the memory file, and has it mapped at the address.
CUresult allocateManaged(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto id = in.get<std::uint64_t>();
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  const auto memory = std::make_shared<Allocation>();
  memory->address = address;
  memory->bytes = bytes;
  memory->context = thread.owner();
  if (memory->context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread.driver.cuCtxGetDevice(&memory->device);
  SharedMemory& shared = thread.session.shared;
  const std::uint64_t addresses = wire::managedAddresses(bytes);
  if (address % wire::kManagedUnit != 0 || addresses < bytes) return CUDA_ERROR_INVALID_VALUE;
  const int file = shared.setAside(id, address, bytes, addresses);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const bool fits = thread.session.pinnedFits(bytes);
  const CUresult status = fits ? pin(thread, *memory, file) : CUDA_ERROR_OUT_OF_MEMORY;
  close(file);
  if (status != CUDA_SUCCESS) {
    if (fits) refundPinned(thread, bytes);
    shared.unmap(address);
    return status;
  }
  thread.session.managed.add(memory);
  return CUDA_SUCCESS;
}

/// Gives the memory a place for the GPU, if it has none. Replies with the place.
CUresult placeManaged(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto address = in.get<std::uint64_t>();
  const bool pinned = in.get<std::uint32_t>() != 0;
  if (!in.finished()) return thread.refuseFrame();
  const auto memory = thread.session.managed.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory->mutex);
  const CUresult status = place(thread, *memory, pinned);
  out.put(static_cast<std::uint32_t>(memory->place));
  return status;
}

CUresult moveManagedToGpu(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  const auto ranges = in.getArray<wire::AddressRange>(wire::kMostMoves);
  if (!in.finished()) return thread.refuseFrame();
  const auto memory = thread.session.managed.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory->mutex);
  return move(thread, *memory, [&] {
    CUresult status = CUDA_SUCCESS;
    for (const wire::AddressRange& range : ranges) {
      if (!contains(*memory, range)) return CUDA_ERROR_INVALID_VALUE;
      const std::uint64_t bytes = range.end - range.begin;
      const CUresult copied = thread.driver.cuMemcpyHtoDAsync_v2(
          range.begin, memory->pages + (range.begin - address), bytes, memory->stream);
      if (status == CUDA_SUCCESS) status = copied;
      count(thread.session.figures.bytesHostToDevice, bytes);
    }
    return status;
  });
}

CUresult moveManagedToHost(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  const auto range = in.get<wire::AddressRange>();
  if (!in.finished()) return thread.refuseFrame();
  const auto memory = thread.session.managed.find(address);
  if (memory == nullptr || !contains(*memory, range)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory->mutex);
  return move(thread, *memory, [&] {
    const std::uint64_t bytes = range.end - range.begin;
    count(thread.session.figures.bytesDeviceToHost, bytes);
    return thread.driver.cuMemcpyDtoHAsync_v2(memory->pages + (range.begin - address), range.begin,
                                              bytes, memory->stream);
  });
}

/// After an error, nothing is unmapped, and the client may call it again.
CUresult freeManaged(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  ManagedMemory& managed = thread.session.managed;
  const auto memory = managed.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  awaitGpu(thread, memory->context);
  const std::lock_guard lock(memory->mutex);
  if (managed.find(address) != memory) return CUDA_ERROR_INVALID_VALUE;  // freed meanwhile
  if (const CUresult status = endUse(thread, *memory); status != CUDA_SUCCESS) return status;
  munmap(std::exchange(memory->pages, nullptr), memory->bytes);
  memory->place = ManagedPlace::none;
  memory->context = nullptr;  // ends the attempts of threads that have found it before
  managed.remove(address);
  thread.session.shared.unmap(address);
  refundPinned(thread, memory->bytes);
  return CUDA_SUCCESS;
}

}  // namespace worker
