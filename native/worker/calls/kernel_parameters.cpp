#include "native/worker/calls/kernel_parameters.h"

#include <algorithm>

#include "native/worker/session/thread.h"

namespace worker {

namespace {

/// A function's handle may be that of a kernel.
CUresult parameterOf(const Driver& driver, CUfunction function, std::size_t index,
                     std::size_t& offset, std::size_t& size) {
  const CUresult status = driver.cuFuncGetParamInfo(function, index, &offset, &size);
  return status != CUDA_ERROR_INVALID_HANDLE
             ? status
             : driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), index, &offset,
                                           &size);
}

}  // namespace

std::optional<std::vector<void*>> pointersInto(const Thread& thread, CUfunction function,
                                               std::span<const std::byte> parameters) {
  std::vector<void*> pointers;
  std::size_t offset = 0;
  std::size_t size = 0;
  std::size_t end = 0;
  CUresult status = CUDA_SUCCESS;
  while ((status = parameterOf(thread.driver, function, pointers.size(), offset, size)) ==
         CUDA_SUCCESS) {
    end = std::max(end, offset + size);
    if (end > parameters.size()) return std::nullopt;
    pointers.push_back(const_cast<std::byte*>(parameters.data()) + offset);
  }
  // CUDA_ERROR_INVALID_VALUE: there are no more.
  if (status != CUDA_ERROR_INVALID_VALUE || end != parameters.size()) return std::nullopt;
  return pointers;
}

}  // namespace worker
