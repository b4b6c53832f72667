// Launches of kernels.
#include <map>
#include <utility>
#include <vector>

#include "native/simulator/driver_call.h"
#include "native/simulator/event.h"
#include "native/simulator/handles.h"
#include "native/simulator/launch.h"
#include "native/simulator/stream_capture.h"
#include "native/simulator/texture.h"

using namespace simulator;

namespace {

/// Properties of a launch that its request lacks.
struct Extras {
  std::map<int, CUlaunchAttributeValue> attributes;
  CUevent completed = nullptr;  ///< an event to record when the kernel has ended
};

KernelWork nodeOf(CUfunction f, std::shared_ptr<Function> function, const LaunchRequest& request,
                  const Stream& stream) {
  KernelWork kernel;
  kernel.func = f;
  kernel.function = std::move(function);
  kernel.request = request;
  kernel.attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = request.cooperative ? 1 : 0;
  kernel.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = stream.priority;
  return kernel;
}

CUresult launch(CUfunction f, CUstream hStream, const LaunchRequest& request, void** kernelParams,
                void** extra, const Extras& extras = {}) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    std::shared_ptr<Function> function;
    CUresult status = findFunction(stream.context, f, function);
    if (status != CUDA_SUCCESS) return status;
    if (&stream.context != &function->module.context) return CUDA_ERROR_INVALID_HANDLE;
    status = check(*function, request);
    if (status != CUDA_SUCCESS) return status;
    std::vector<std::byte> parameters;
    status = readParameters(function->info, kernelParams, extra, parameters);
    if (status != CUDA_SUCCESS) return status;
    const auto event = Handles<Event>::all().find(extras.completed);
    if (extras.completed != nullptr && event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (event != nullptr && event->timed()) return CUDA_ERROR_INVALID_VALUE;
    const auto captures = captured(stream, [&](Work& work) {
      KernelWork kernel = nodeOf(f, function, request, stream);
      kernel.parameters = parameters;
      kernel.packed = extra != nullptr;
      for (const auto& [id, value] : extras.attributes) kernel.attributes[id] = value;
      work = std::move(kernel);
      return CUDA_SUCCESS;
    });
    if (captures) {
      if (*captures == CUDA_SUCCESS && event != nullptr) captureRecord(event, stream, 0);
      return *captures;
    }
    const auto done =
        stream.submit([function, request, parameters = std::move(parameters),
                       images = currentImages()] { run(*function, request, parameters, images); });
    if (event != nullptr) event->record(done);
    return CUDA_SUCCESS;
  });
}

/// Reads a launch attribute.
bool apply(const CUlaunchAttribute& attribute, LaunchRequest& request, Extras& extras) {
  const auto& value = attribute.value;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      extras.completed = value.programmaticEvent.event;
      return true;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      extras.completed = value.launchCompletionEvent.event;
      return true;
    case CU_LAUNCH_ATTRIBUTE_IGNORE: return true;
    default: extras.attributes[attribute.id] = value; return apply(attribute.id, value, request);
  }
}

}  // namespace

DRIVER_CALL cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                           unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                           unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                           void** kernelParams, void** extra) {
  LaunchRequest request;
  request.grid = {gridDimX, gridDimY, gridDimZ};
  request.block = {blockDimX, blockDimY, blockDimZ};
  request.dynamicShared = sharedMemBytes;
  return launch(f, hStream, request, kernelParams, extra);
}

DRIVER_CALL cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                      unsigned int gridDimZ, unsigned int blockDimX,
                                      unsigned int blockDimY, unsigned int blockDimZ,
                                      unsigned int sharedMemBytes, CUstream hStream,
                                      void** kernelParams) {
  LaunchRequest request;
  request.grid = {gridDimX, gridDimY, gridDimZ};
  request.block = {blockDimX, blockDimY, blockDimZ};
  request.dynamicShared = sharedMemBytes;
  request.cooperative = true;
  return launch(f, hStream, request, kernelParams, nullptr);
}

/// One GPU, as its attributes say: barriers of several grids are not simulated.
DRIVER_CALL cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launchParamsList,
                                                 unsigned int numDevices, unsigned int flags) {
  constexpr unsigned kFlags = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                              CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
  if (launchParamsList == nullptr || numDevices == 0 || (flags & ~kFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (numDevices > 1) return CUDA_ERROR_NOT_SUPPORTED;
  const CUDA_LAUNCH_PARAMS& one = *launchParamsList;
  if (isDefault(one.hStream)) return CUDA_ERROR_INVALID_HANDLE;
  return cuLaunchCooperativeKernel(one.function, one.gridDimX, one.gridDimY, one.gridDimZ,
                                   one.blockDimX, one.blockDimY, one.blockDimZ, one.sharedMemBytes,
                                   one.hStream, one.kernelParams);
}

DRIVER_CALL cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                             void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest request;
  request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  request.dynamicShared = config->sharedMemBytes;
  Extras extras;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (!apply(config->attrs[i], request, extras)) return CUDA_ERROR_INVALID_VALUE;
  }
  return launch(f, config->hStream, request, kernelParams, extra, extras);
}
