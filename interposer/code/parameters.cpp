#include "interposer/code/parameters.h"

#include <cstring>

namespace interposer {

CUresult readParameters(Kernel& kernel, void** kernelParams, void** extra, Parameters& parameters) {
  if (const CUresult status = kernel.parameters(parameters.layout); status != CUDA_SUCCESS)
    return status;
  if (extra == nullptr) {
    if (kernelParams == nullptr && !parameters.layout->empty()) return CUDA_ERROR_INVALID_VALUE;
    parameters.pointers = kernelParams;
    parameters.bytes = kernel.parameterBytes();
    return CUDA_SUCCESS;
  }
  if (kernelParams != nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      parameters.buffer = static_cast<const std::byte*>(extra[1]);
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      parameters.bytes = *static_cast<const std::size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (parameters.buffer == nullptr && parameters.bytes > 0) return CUDA_ERROR_INVALID_VALUE;
  return parameters.bytes <= kernel.parameterBytes()
             ? CUDA_SUCCESS
             : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;  // as recorded
}

void copyParameters(std::byte* to, const Parameters& parameters) {
  if (parameters.buffer != nullptr) {
    std::memcpy(to, parameters.buffer, parameters.bytes);
    return;
  }
  void** pointer = parameters.pointers;
  for (const auto& [offset, size] : *parameters.layout) std::memcpy(to + offset, *pointer++, size);
}

}  // namespace interposer
