// Kernel launches. The first launch of each shape waits for the driver's verdict; later ones are
// enqueued.
#include "wire/launch.h"
#include "interposer/code/kernels.h"
#include "interposer/code/parameters.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

std::uint64_t digest(std::span<const CUlaunchAttribute> attributes) {
  std::uint64_t hash = attributes.empty() ? 0 : 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(attributes))
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

/// Checks that do not depend on the kernel.
CUresult checkGrid(const std::uint32_t (&grid)[3], const std::uint32_t (&block)[3]) {
  CUdevice device = 0;
  if (const CUresult status = currentDevice(&device); status != CUDA_SUCCESS) return status;
  const auto& attributes = Session::current()->devices()[device].attributes;
  for (int axis = 0; axis < 3; ++axis) {
    const auto gridLimit =
        static_cast<std::uint32_t>(attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis]);
    const auto blockLimit =
        static_cast<std::uint32_t>(attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis]);
    if (grid[axis] == 0 || grid[axis] > gridLimit || block[axis] == 0 || block[axis] > blockLimit)
      return CUDA_ERROR_INVALID_VALUE;
  }
  const auto threads = std::uint64_t{block[0]} * block[1] * block[2];
  return threads <=
                 static_cast<std::uint64_t>(attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

/// An earlier launch of the same block size says nothing about a grid of clusters, or one that must
/// be resident as a whole.
void coverGrid(LaunchShape& shape, const wire::LaunchFrame& frame) {
  for (const std::uint32_t extent : frame.grid)
    shape.attributes = (shape.attributes ^ extent) * 0x100000001b3u;
}

/// The thread's last call was a launch into the legacy default stream.
void noteLegacyLaunch() {
  Thread& thread = Thread::current();
  const Completed::Load before =
      thread.completed.load(thread.context(), thread.changes - wire::kTicket);
  if (before == Completed::kIdle || before == Completed::kLegacy)
    thread.completed.noteLoad(thread.context(), thread.changes, Completed::kLegacy);
}

CUresult launch(CallNumber number, wire::LaunchFrame frame,
                std::span<const CUlaunchAttribute> attributes, void** kernelParams, void** extra) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Kernel* const kernel = findKernel(frame.function);
  if (kernel == nullptr) return unknownHandle();
  // Without a current context, the driver takes that of the stream, and checks the grid.
  const bool ofStream =
      Thread::current().context() == nullptr && !isDefault(handle<CUstream>(frame.stream));
  if (!ofStream)
    if (const CUresult status = checkGrid(frame.grid, frame.block); status != CUDA_SUCCESS)
      return status;
  Parameters parameters;
  if (const CUresult status = readParameters(*kernel, kernelParams, extra, parameters);
      status != CUDA_SUCCESS)
    return status;

  frame.parameterBytes = static_cast<std::uint32_t>(parameters.bytes);

  LaunchShape shape{{frame.block[0], frame.block[1], frame.block[2]},
                    frame.sharedBytes,
                    digest(attributes),
                    interposer::number(Thread::current().context())};
  if (!attributes.empty() || number == CallNumber::cuLaunchCooperativeKernel)
    coverGrid(shape, frame);
  const KernelAnswers::Digest asked = kernel->answers.digestOf(shape);
  const bool known =
      kernel->answers.accepted(asked) && isOfCurrentContext(handle<CUstream>(frame.stream));

  StreamThreads& threads = Session::current()->streamThreads;
  const std::uint64_t thread = Thread::current().number;
  // Whether it may run beside those of other threads into other streams.
  const bool shares = known && number != CallNumber::cuLaunchCooperativeKernel &&
                      threads.mayShare(frame.stream, thread);
  Call call;
  if (!call.begin(number, sizeof frame + 24 + parameters.bytes + attributes.size_bytes(),
                  shares ? kShared : kOrdered))
    return call.status();
  if (shares) threads.shared(frame.stream, thread);
  call.encoder().put(frame);
  if (std::byte* to = call.encoder().space(parameters.bytes)) copyParameters(to, parameters);
  if (number == CallNumber::cuLaunchKernelEx)
    call.encoder().putBytes(attributes.data(), attributes.size_bytes());
  if (known) {
    const CUresult status = call.enqueue();
    if (status == CUDA_SUCCESS && isLegacy(handle<CUstream>(frame.stream))) noteLegacyLaunch();
    return status;
  }
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) kernel->answers.accept(asked);
  return status;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  const wire::LaunchFrame frame{number(f),
                                number(hStream),
                                {gridDimX, gridDimY, gridDimZ},
                                {blockDimX, blockDimY, blockDimZ},
                                sharedMemBytes,
                                0};
  return launch(CallNumber::cuLaunchKernel, frame, {}, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra, CUstream defaultStream) {
  if (config == nullptr || config->numAttrs > wire::kMaxLaunchAttributes ||
      (config->numAttrs > 0 && config->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const wire::LaunchFrame frame{
      number(f),
      number(config->hStream != nullptr ? config->hStream : defaultStream),
      {config->gridDimX, config->gridDimY, config->gridDimZ},
      {config->blockDimX, config->blockDimY, config->blockDimZ},
      config->sharedMemBytes,
      0};
  return launch(CallNumber::cuLaunchKernelEx, frame, {config->attrs, config->numAttrs},
                kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  const wire::LaunchFrame frame{number(f),
                                number(hStream),
                                {gridDimX, gridDimY, gridDimZ},
                                {blockDimX, blockDimY, blockDimZ},
                                sharedMemBytes,
                                0};
  return launch(CallNumber::cuLaunchCooperativeKernel, frame, {}, kernelParams, nullptr);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuLaunchHostFunc, 24, kOrdered)) return call.status();
  call.encoder().put(number(hStream));
  call.encoder().put(fn);
  call.encoder().put(userData);
  return call.enqueue();
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuStreamAddCallback, 24, kOrdered)) return call.status();
  call.encoder().put(number(hStream));
  call.encoder().put(callback);
  call.encoder().put(userData);
  return call.enqueue();
}

}  // namespace interposer
