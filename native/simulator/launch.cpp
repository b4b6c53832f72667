#include "native/simulator/launch.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/fault.h"
#include "native/simulator/kernel_services.h"
#include "native/simulator/texture.h"

namespace simulator {
namespace {

void write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// Reads the parameter buffer of `extra`. If it is too short, the rest is zero; if it is too long,
/// the launch fails.
CUresult readExtra(void** extra, std::vector<std::byte>& parameters) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (size == nullptr || *size == 0) return CUDA_SUCCESS;
  if (buffer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*size > parameters.size()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  std::memcpy(parameters.data(), buffer, *size);
  return CUDA_SUCCESS;
}

}  // namespace

void run(const Function& function, const LaunchRequest& request,
         const std::vector<std::byte>& parameters, std::shared_ptr<const Images> images) {
  Context& context = function.module.context;
  Launch launch;
  launch.program = function.module.program.get();
  launch.kernel = function.index;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.cluster = request.clusterGiven || function.info.requiredClusterDim[0] == 0
                       ? request.cluster
                       : function.info.requiredClusterDim;
  launch.dynamicSharedBytes = request.dynamicShared;
  launch.cooperative = request.cooperative;
  launch.parameters = parameters;
  Environment environment;
  environment.memory = context.memory.get();
  if (images == nullptr) images = currentImages();
  environment.images = images.get();
  environment.output.text = [](std::string_view text) { write(stdout, text); };
  environment.output.assertion = [](std::string_view text) { write(stderr, text); };
  environment.deviceMalloc = [&](std::uint64_t bytes) { return context.heap.allocate(bytes); };
  environment.deviceFree = [&](std::uint64_t address) { context.heap.release(address); };
  KernelServices services(context);
  environment.runtime = &services;
  CUresult result = CUDA_SUCCESS;
  {
    const Device::Busy busy(context.device);
    result = execute(launch, environment);
  }
  std::fflush(stdout);
  if (result != CUDA_SUCCESS) setFault(result);
}

CUresult readParameters(const KernelInfo& info, void** kernelParams, void** extra,
                        std::vector<std::byte>& parameters) {
  parameters.resize(info.parameterBytes);
  if (kernelParams != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr) return readExtra(extra, parameters);
  if (info.parameters.empty()) return CUDA_SUCCESS;
  if (kernelParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    if (kernelParams[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(parameters.data() + info.parameters[i].offset, kernelParams[i],
                info.parameters[i].size);
  }
  return CUDA_SUCCESS;
}

bool apply(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, LaunchRequest& request) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: request.cooperative = value.cooperative != 0; return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      request.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      request.clusterGiven = true;
      return true;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return true;
    default: return false;
  }
}

}  // namespace simulator
