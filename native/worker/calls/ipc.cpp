// Memory and events of other processes. The driver's handles and files stay in the workers: a
// program gets a name that only workers of its allocation resolve, because the driver would open
// any handle that a program invents.
#include <bit>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using Kind = ExportTable::Kind;

std::uint64_t addressOf(CUevent event) { return reinterpret_cast<std::uint64_t>(event); }

/// Exports memory of the driver's cuMemAlloc.
CUresult exportAsDriver(Thread& thread, const MovableMemory::Allocation& memory,
                        const Quota::Charge& charge, CUipcMemHandle* handle) {
  CUipcMemHandle own{};
  if (const CUresult status = thread.driver.cuIpcGetMemHandle(&own, memory.begin);
      status != CUDA_SUCCESS)
    return status;
  const auto name = thread.session.sharing.share(Kind::memory, memory.begin, memory.context,
                                                 charge.bytes, std::bit_cast<SharedName>(own));
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = std::bit_cast<CUipcMemHandle>(*name);
  return CUDA_SUCCESS;
}

/// A file of this process itself is refused, as the driver refuses its handle.
CUresult open(Thread& thread, const ExportTable::Found& found, unsigned flags,
              CUdeviceptr* address) {
  if (found.kind == Kind::memory)
    return thread.driver.cuIpcOpenMemHandle_v2(address,
                                               std::bit_cast<CUipcMemHandle>(found.content), flags);
  if (found.own) return CUDA_ERROR_INVALID_CONTEXT;
  MovableMemory& memory = thread.session.memory;
  const wire::FileKey key = FileExports::keyOf(found);
  if (const auto again = memory.openAgain(key)) return *address = *again, CUDA_SUCCESS;
  const OwnedFile file(thread.session.sharing.fetchFile(found, key));
  if (file.get() < 0) return CUDA_ERROR_INVALID_VALUE;
  return memory.open(key, file.get(), FileExports::geometryOf(found), address);
}

}  // namespace

/// Memory without a charge of its own (code, pools) cannot be exported, nor can imported memory.
/// The memory may be freed meanwhile: then its charge is gone, or it is another allocation.
CUresult cuIpcGetMemHandle(Thread& thread, CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  Session& session = thread.session;
  if (!session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto memory = session.memory.find(dptr);
  const auto charge = memory ? session.quota.find(memory->begin) : std::nullopt;
  if (!charge) return session.memory.refusal();
  int file = -1;
  MovableMemory::Geometry geometry;
  const CUresult status = session.memory.exportFile(memory->begin, &file, &geometry);
  if (status == CUDA_ERROR_NOT_SUPPORTED) return exportAsDriver(thread, *memory, *charge, pHandle);
  if (status != CUDA_SUCCESS) return status;
  const FileExports::Object object{Kind::memoryFile, memory->begin};
  const auto name = session.fileExports.offerMemory(object, memory->context, charge->bytes,
                                                    geometry, OwnedFile(file));
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto still = session.memory.find(dptr);
  if (!still || still->id != memory->id || !session.quota.find(memory->begin))
    return session.fileExports.ended(object), CUDA_ERROR_INVALID_VALUE;
  *pHandle = std::bit_cast<CUipcMemHandle>(*name);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(Thread& thread, CUdeviceptr* pdptr, CUipcMemHandle handle,
                               unsigned int Flags) {
  Sharing& sharing = thread.session.sharing;
  if (!sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  if ((Flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == 0) return thread.session.memory.refusal();
  const auto name = std::bit_cast<SharedName>(handle);
  auto found = sharing.find(Kind::memoryFile, name);
  if (!found) found = sharing.find(Kind::memory, name);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = open(thread, *found, Flags, pdptr);
  if (status == CUDA_SUCCESS)
    sharing.opened(*pdptr, thread.owner(), *found);
  else
    sharing.release(*found);
  return status;
}

CUresult cuIpcCloseMemHandle(Thread& thread, CUdeviceptr dptr) {
  Sharing& sharing = thread.session.sharing;
  auto opening = sharing.take(dptr, Kind::memoryFile);
  if (!opening) opening = sharing.take(dptr, Kind::memory);
  thread.passTicket(opening ? opening->context : nullptr);
  if (!opening) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = opening->found.kind == Kind::memoryFile
                              ? thread.session.memory.close(dptr)
                              : thread.driver.cuIpcCloseMemHandle(dptr);
  if (status == CUDA_SUCCESS || opening->found.kind == Kind::memoryFile)
    sharing.release(opening->found);
  else
    sharing.opened(dptr, opening->context, opening->found);
  return status;
}

CUresult cuIpcGetEventHandle(Thread& thread, CUipcEventHandle* pHandle, CUevent event) {
  Sharing& sharing = thread.session.sharing;
  if (!sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  CUipcEventHandle handle{};
  if (const CUresult status = thread.driver.cuIpcGetEventHandle(&handle, event);
      status != CUDA_SUCCESS)
    return status;
  const auto name = sharing.share(Kind::event, addressOf(event), thread.owner(), 0,
                                  std::bit_cast<SharedName>(handle));
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  *pHandle = std::bit_cast<CUipcEventHandle>(*name);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(Thread& thread, CUevent* phEvent, CUipcEventHandle handle) {
  Sharing& sharing = thread.session.sharing;
  if (!sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto found = sharing.find(Kind::event, std::bit_cast<SharedName>(handle));
  if (!found) return CUDA_ERROR_MAP_FAILED;
  const CUresult status =
      thread.driver.cuIpcOpenEventHandle(phEvent, std::bit_cast<CUipcEventHandle>(found->content));
  sharing.release(*found);
  if (status == CUDA_SUCCESS) thread.session.gate.created(*phEvent, CU_EVENT_DISABLE_TIMING);
  return status;
}

}  // namespace worker
