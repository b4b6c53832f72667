// Memory and pools of other processes, by file descriptor. The driver's descriptors stay in the
// workers: what a program has is a socket that names an export (session/file_exports.h).
#include <bit>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using Kind = ExportTable::Kind;
constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct ExportFrame {
  std::uint64_t object = 0;
  OwnedFile watched;
};

/// Always takes the file that the client has sent.
bool readFrame(Thread& thread, wire::Decoder& in, ExportFrame& frame) {
  frame.object = in.get<std::uint64_t>();
  const auto file = in.get<std::uint64_t>();
  if (!in.finished()) return false;
  frame.watched = OwnedFile(thread.session.shared.take(file));
  return true;
}

/// What a program imports, held until the last copy of this pointer is gone.
struct Import {
  ExportTable::Found found;
  std::shared_ptr<void> held;
};

std::optional<Import> findImport(Thread& thread, Kind kind, const SharedName& name) {
  Sharing& sharing = thread.session.sharing;
  const auto found = sharing.find(kind, name);
  if (!found) return std::nullopt;
  const ExportTable::Found held = *found;
  return Import{held, std::shared_ptr<void>(&sharing, [held](void* of) {
                  static_cast<Sharing*>(of)->release(held);
                })};
}

OwnedFile fetch(Thread& thread, const ExportTable::Found& found) {
  return OwnedFile(thread.session.sharing.fetchFile(found, FileExports::keyOf(found)));
}

/// The driver takes a descriptor in the place of a pointer.
void* asPointer(const OwnedFile& file) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
}

void letGo(Session& session, std::uint64_t number) {
  session.quota.refund(session.physicalMemory.letGo(number));
}

CUresult importOwn(Thread& thread, const Import& import, CUmemGenericAllocationHandle* handle) {
  Session& session = thread.session;
  const std::uint64_t number = FileExports::idOf(import.found);
  if (!session.physicalMemory.holdAgain(number)) return CUDA_ERROR_INVALID_VALUE;
  const OwnedFile file = fetch(thread, import.found);
  const CUresult status =
      file.get() < 0 ? CUDA_ERROR_INVALID_VALUE
                     : thread.driver.cuMemImportFromShareableHandle(handle, asPointer(file), kFile);
  if (status == CUDA_SUCCESS) session.physicalMemory.importedAgain(*handle, number);
  letGo(session, number);
  return status;
}

CUresult importOther(Thread& thread, const Import& import, CUmemGenericAllocationHandle* handle) {
  const OwnedFile file = fetch(thread, import.found);
  if (file.get() < 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status =
      thread.driver.cuMemImportFromShareableHandle(handle, asPointer(file), kFile);
  if (status == CUDA_SUCCESS) thread.session.physicalMemory.imported(*handle, import.held);
  return status;
}

std::uint64_t idOf(CUmemoryPool pool) { return reinterpret_cast<std::uint64_t>(pool); }

/// Bytes that another worker may keep from being freed with one pointer: the pool gives whole steps
/// back to the driver.
std::uint64_t wholeSteps(std::uint64_t bytes) {
  constexpr std::uint64_t kStep = PoolAccount::kStep;
  return bytes > ~std::uint64_t{0} - kStep ? bytes : (bytes + kStep - 1) / kStep * kStep;
}

}  // namespace

/// Imported memory cannot be exported again: its charge would end with the first export.
CUresult cuMemExportToShareableHandle(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  Session& session = thread.session;
  ExportFrame frame;
  if (!readFrame(thread, in, frame)) return thread.refuseFrame();
  if (!session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult status = thread.find<CUmemGenericAllocationHandle>(frame.object, &handle);
      status != CUDA_SUCCESS)
    return status;
  const auto held = session.physicalMemory.hold(handle);
  if (!held) return CUDA_ERROR_NOT_SUPPORTED;
  const std::uint64_t number = held->number;
  int file = -1;
  const CUresult status = thread.driver.cuMemExportToShareableHandle(&file, handle, kFile, 0);
  if (status != CUDA_SUCCESS) return letGo(session, number), status;
  session.physicalMemory.onEnd(number, [&session, number] {
    session.fileExports.ended({Kind::physical, number});
  });
  const auto name = session.fileExports.add({Kind::physical, number}, held->bytes, OwnedFile(file),
                                            std::move(frame.watched),
                                            [&session, number] { letGo(session, number); });
  if (!name) return letGo(session, number), CUDA_ERROR_OUT_OF_MEMORY;
  out.put(*name);
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto name = in.get<SharedName>();
  if (!in.finished()) return thread.refuseFrame();
  if (!thread.session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto import = findImport(thread, Kind::physical, name);
  if (!import) return CUDA_ERROR_INVALID_VALUE;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult status = import->found.own ? importOwn(thread, *import, &handle)
                                            : importOther(thread, *import, &handle);
  if (status != CUDA_SUCCESS) return status;
  out.put<std::uint64_t>(
      thread.add(wire::HandleKind::genericAllocation, reinterpret_cast<void*>(handle)));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  Session& session = thread.session;
  ExportFrame frame;
  if (!readFrame(thread, in, frame)) return thread.refuseFrame();
  if (!session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(frame.object, &pool);
      status != CUDA_SUCCESS)
    return status;
  int file = -1;
  const CUresult status = thread.driver.cuMemPoolExportToShareableHandle(&file, pool, kFile, 0);
  if (status != CUDA_SUCCESS) return status;
  const auto name = session.fileExports.add({Kind::pool, idOf(pool)}, 0, OwnedFile(file),
                                            std::move(frame.watched), {});
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!session.pools.lives(pool))  // another thread has destroyed it
    return session.fileExports.ended({Kind::pool, idOf(pool)}), CUDA_ERROR_INVALID_VALUE;
  out.put(*name);
  return CUDA_SUCCESS;
}

/// A pool of this process itself is refused: its memory would be freed while it is in use.
CUresult cuMemPoolImportFromShareableHandle(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto name = in.get<SharedName>();
  if (!in.finished()) return thread.refuseFrame();
  if (!thread.session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto import = findImport(thread, Kind::pool, name);
  if (!import || import->found.own) return CUDA_ERROR_INVALID_VALUE;
  const OwnedFile file = fetch(thread, import->found);
  if (file.get() < 0) return CUDA_ERROR_INVALID_VALUE;
  CUmemoryPool pool = nullptr;
  const CUresult status =
      thread.driver.cuMemPoolImportFromShareableHandle(&pool, asPointer(file), kFile, 0);
  if (status != CUDA_SUCCESS) return status;
  thread.session.pools.imported(pool, import->found.entry, import->held);
  out.put<std::uint64_t>(thread.add(wire::HandleKind::memoryPool, pool));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(Thread& thread, CUmemPoolPtrExportData* shareData_out,
                                CUdeviceptr ptr) {
  Session& session = thread.session;
  if (!session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto allocation = session.pools.poolOf(ptr);
  const CUmemoryPool pool = allocation.first;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmemPoolPtrExportData data{};
  if (const CUresult status = thread.driver.cuMemPoolExportPointer(&data, ptr);
      status != CUDA_SUCCESS)
    return status;
  session.fileExports.name({Kind::pool, idOf(pool)}, 0);
  const auto group = session.sharing.entryOf(Kind::pool, idOf(pool));
  if (!group) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto name =
      session.sharing.share(Kind::poolPointer, ptr, nullptr, wholeSteps(allocation.second),
                            std::bit_cast<SharedName>(data), *group);
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  if (session.pools.poolOf(ptr) != allocation)  // another thread has freed it
    return session.sharing.ended(Kind::poolPointer, ptr), CUDA_ERROR_INVALID_VALUE;
  *shareData_out = std::bit_cast<CUmemPoolPtrExportData>(*name);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(Thread& thread, CUdeviceptr* ptr_out, CUmemoryPool pool,
                                CUmemPoolPtrExportData* shareData) {
  Sharing& sharing = thread.session.sharing;
  if (!sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto group = thread.session.pools.importedFrom(pool);
  if (!group) return CUDA_ERROR_INVALID_VALUE;
  const auto found = sharing.find(Kind::poolPointer, std::bit_cast<SharedName>(*shareData));
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (found->own || found->group != *group)
    return sharing.release(*found), CUDA_ERROR_INVALID_VALUE;
  auto data = std::bit_cast<CUmemPoolPtrExportData>(found->content);
  const CUresult status = thread.driver.cuMemPoolImportPointer(ptr_out, pool, &data);
  if (status == CUDA_SUCCESS)
    sharing.opened(*ptr_out, nullptr, *found);
  else
    sharing.release(*found);
  return status;
}

}  // namespace worker
