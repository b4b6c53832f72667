// A cooperative launch that names its streams: one kernel for each GPU. A list for one GPU travels;
// the grids of a longer one would have to start together, which windows of several GPUs do not
// promise, and CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH reads 0.
#include "interposer/code/kernels.h"
#include "interposer/code/parameters.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "wire/launch.h"

namespace interposer {

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launchParamsList,
                                              unsigned int numDevices, unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (launchParamsList == nullptr || numDevices == 0 ||
      numDevices > Session::current()->devices().size())
    return CUDA_ERROR_INVALID_VALUE;
  if (numDevices > 1)
    return unsupported("cuLaunchCooperativeKernelMultiDevice", "its grids are on several GPUs");
  const CUDA_LAUNCH_PARAMS& given = *launchParamsList;
  Kernel* const kernel = findKernel(given.function);
  if (kernel == nullptr) return unknownHandle();
  Parameters parameters;
  if (const CUresult status = readParameters(*kernel, given.kernelParams, nullptr, parameters);
      status != CUDA_SUCCESS)
    return status;
  const wire::LaunchFrame frame{number(given.function),
                                number(given.hStream),
                                {given.gridDimX, given.gridDimY, given.gridDimZ},
                                {given.blockDimX, given.blockDimY, given.blockDimZ},
                                given.sharedMemBytes,
                                static_cast<std::uint32_t>(parameters.bytes)};
  Call call;
  if (!call.begin(CallNumber::cuLaunchCooperativeKernelMultiDevice,
                  sizeof frame + 24 + parameters.bytes, kOrdered))
    return call.status();
  call.encoder().put(frame);
  if (std::byte* to = call.encoder().space(parameters.bytes)) copyParameters(to, parameters);
  call.encoder().put(flags);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
