// Memory and events of other processes. The driver's handles stay in the worker: a program gets a
// name that only workers of its allocation resolve, because the driver would open any handle that a
// program invents.
#include <bit>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using Kind = ExportTable::Kind;

std::uint64_t addressOf(CUevent event) { return reinterpret_cast<std::uint64_t>(event); }

}  // namespace

/// Memory without a charge of its own (code, pools) cannot be exported.
CUresult cuIpcGetMemHandle(Thread& thread, CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  Session& session = thread.session;
  if (!session.sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  CUipcMemHandle handle{};
  if (const CUresult status = thread.driver.cuIpcGetMemHandle(&handle, dptr);
      status != CUDA_SUCCESS)
    return status;
  CUdeviceptr base = 0;
  size_t size = 0;
  if (const CUresult status = thread.driver.cuMemGetAddressRange_v2(&base, &size, dptr);
      status != CUDA_SUCCESS)
    return status;
  const auto charge = session.quota.find(base);
  if (!charge) return CUDA_ERROR_INVALID_VALUE;
  const auto owner = static_cast<CUcontext>(const_cast<void*>(charge->owner));
  const auto name = session.sharing.share(Kind::memory, base, owner, charge->bytes,
                                          std::bit_cast<SharedName>(handle));
  if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
  *pHandle = std::bit_cast<CUipcMemHandle>(*name);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(Thread& thread, CUdeviceptr* pdptr, CUipcMemHandle handle,
                               unsigned int Flags) {
  Sharing& sharing = thread.session.sharing;
  if (!sharing.possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto found = sharing.find(Kind::memory, std::bit_cast<SharedName>(handle));
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuIpcOpenMemHandle_v2(
      pdptr, std::bit_cast<CUipcMemHandle>(found->content), Flags);
  if (status == CUDA_SUCCESS)
    sharing.opened(*pdptr, thread.owner(), *found);
  else
    sharing.release(*found);
  return status;
}

CUresult cuIpcCloseMemHandle(Thread& thread, CUdeviceptr dptr) {
  Sharing& sharing = thread.session.sharing;
  const auto opening = sharing.take(dptr, Kind::memory);
  thread.passTicket(opening ? opening->context : nullptr);
  if (!opening) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuIpcCloseMemHandle(dptr);
  if (status == CUDA_SUCCESS)
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
