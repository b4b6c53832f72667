#include "wire/launch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "native/worker/calls/kernel_parameters.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// A decoded launch. The worker resolves its handles; the driver validates the rest.
struct LaunchRequest {
  wire::LaunchFrame frame{};
  std::span<const std::byte> parameters;
  CUfunction function = nullptr;
  CUstream stream = nullptr;

  void decode(wire::Decoder& in) {
    frame = in.get<wire::LaunchFrame>();
    parameters = in.getSpace(frame.parameterBytes, wire::kMaxParameterBytes);
  }

  CUresult resolve(Thread& thread) {
    if (const CUresult status = thread.find<CUfunction>(frame.function, &function);
        status != CUDA_SUCCESS)
      return status;
    if (const CUresult status = thread.find<CUstream>(frame.stream, &stream);
        status != CUDA_SUCCESS)
      return status;
    return thread.localMemoryFits(frame.function, function, stream) && thread.codeFits()
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
  }

  void awaitWindow(Thread& thread, Window window) const {
    const auto pair = [](std::uint64_t high, std::uint64_t low) { return high << 32 | low; };
    thread.awaitWindow(window, stream, 0,
                       {frame.function, pair(frame.grid[0], frame.grid[1]),
                        pair(frame.grid[2], frame.block[0]), pair(frame.block[1], frame.block[2])});
  }
};

/// The `extra` argument of a launch: passes the parameters as one buffer instead of one pointer
/// each.
class Extra {
 public:
  explicit Extra(std::span<const std::byte> parameters)
      : bytes_(parameters.size()),
        words_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(parameters.data()),
               CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_, CU_LAUNCH_PARAM_END} {}
  Extra(const Extra&) = delete;
  void** words() { return words_.data(); }

 private:
  std::size_t bytes_;
  std::array<void*, 5> words_;
};

bool isCooperative(std::span<const CUlaunchAttribute> attributes) {
  return std::ranges::any_of(attributes, [](const CUlaunchAttribute& attribute) {
    return attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  });
}

template <class Event>
CUresult resolveEvent(const Thread& thread, Event& event) {
  return thread.find<CUevent>((std::uint64_t)event, &event);
}

/// Resolves the handle in an attribute, if it carries one.
CUresult resolveAttribute(const Thread& thread, CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return resolveEvent(thread, attribute.value.programmaticEvent.event);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return resolveEvent(thread, attribute.value.launchCompletionEvent.event);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_SUCCESS;
  }
}

/// Configuration for cuLaunchKernelEx and the occupancy queries.
struct Configuration {
  std::array<CUlaunchAttribute, wire::kMaxLaunchAttributes> attributes;
  CUlaunchConfig config{};

  CUresult fill(const Thread& thread, const wire::LaunchFrame& frame, CUstream stream,
                std::span<const CUlaunchAttribute> given) {
    std::copy(given.begin(), given.end(), attributes.begin());
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (const CUresult status = resolveAttribute(thread, attributes[i]); status != CUDA_SUCCESS)
        return status;
    }
    config = {frame.grid[0],     frame.grid[1],
              frame.grid[2],     frame.block[0],
              frame.block[1],    frame.block[2],
              frame.sharedBytes, stream,
              attributes.data(), static_cast<unsigned>(given.size())};
    return CUDA_SUCCESS;
  }
};

/// A capture refuses a cooperative kernel whose parameters are in one buffer.
CUresult launchWith(const Thread& thread, const LaunchRequest& launch,
                    const CUlaunchConfig& config) {
  std::optional<std::vector<void*>> pointers;
  if (isCooperative({config.attrs, config.numAttrs}))
    pointers = pointersInto(thread, launch.function, launch.parameters);
  Extra extra(launch.parameters);
  return thread.driver.cuLaunchKernelEx(&config, launch.function,
                                        pointers ? pointers->data() : nullptr,
                                        pointers ? nullptr : extra.words());
}

CUresult counted(Thread& thread, CUstream stream, CUresult status) {
  thread.noteLaunch(stream);
  if (status == CUDA_SUCCESS) thread.countLaunch();
  return status;
}

/// Body of cuOccupancyMaxActiveClusters and cuOccupancyMaxPotentialClusterSize.
CUresult askWithConfiguration(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                              CUresult (*ask)(int*, CUfunction, const CUlaunchConfig*)) {
  const auto frame = in.get<wire::LaunchFrame>();
  const auto attributes = in.getArray<CUlaunchAttribute>(wire::kMaxLaunchAttributes);
  if (!in.finished()) return thread.refuseFrame();
  if (ask == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUfunction>(frame.function, &function);
      status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUstream>(frame.stream, &stream); status != CUDA_SUCCESS)
    return status;
  Configuration configuration;
  if (const CUresult status = configuration.fill(thread, frame, stream, attributes);
      status != CUDA_SUCCESS)
    return status;
  int value = 0;
  const CUresult status = ask(&value, function, &configuration.config);
  out.put(value);
  return status;
}

}  // namespace

CUresult cuLaunchKernel(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  LaunchRequest launch;
  launch.decode(in);
  if (!in.finished()) return thread.refuseFrame();
  if (const CUresult status = launch.resolve(thread); status != CUDA_SUCCESS) return status;
  const auto& grid = launch.frame.grid;
  const auto& block = launch.frame.block;
  launch.awaitWindow(thread, window);
  Extra extra(launch.parameters);
  return counted(thread, launch.stream,
                 thread.driver.cuLaunchKernel(launch.function, grid[0], grid[1], grid[2], block[0],
                                              block[1], block[2], launch.frame.sharedBytes,
                                              launch.stream, nullptr, extra.words()));
}

CUresult cuLaunchKernelEx(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  LaunchRequest launch;
  launch.decode(in);
  const auto attributes = in.getArray<CUlaunchAttribute>(wire::kMaxLaunchAttributes);
  if (!in.finished()) return thread.refuseFrame();
  if (const CUresult status = launch.resolve(thread); status != CUDA_SUCCESS) return status;
  Configuration configuration;
  if (const CUresult status = configuration.fill(thread, launch.frame, launch.stream, attributes);
      status != CUDA_SUCCESS)
    return status;
  launch.awaitWindow(thread, window);
  return counted(thread, launch.stream, launchWith(thread, launch, configuration.config));
}

/// The same as cuLaunchKernelEx with the cooperative attribute.
CUresult cuLaunchCooperativeKernel(Thread& thread, wire::Decoder& in, wire::Encoder&,
                                   Window window) {
  LaunchRequest launch;
  launch.decode(in);
  if (!in.finished()) return thread.refuseFrame();
  if (const CUresult status = launch.resolve(thread); status != CUDA_SUCCESS) return status;
  const auto& grid = launch.frame.grid;
  const auto& block = launch.frame.block;
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  const CUlaunchConfig config{
      grid[0],       grid[1],      grid[2], block[0], block[1], block[2], launch.frame.sharedBytes,
      launch.stream, &cooperative, 1};
  launch.awaitWindow(thread, window);
  return counted(thread, launch.stream, launchWith(thread, launch, config));
}

/// On one GPU, which is all that the client sends.
CUresult cuLaunchCooperativeKernelMultiDevice(Thread& thread, wire::Decoder& in, wire::Encoder&,
                                              Window window) {
  LaunchRequest launch;
  launch.decode(in);
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuLaunchCooperativeKernelMultiDevice == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult status = launch.resolve(thread); status != CUDA_SUCCESS) return status;
  auto pointers = pointersInto(thread, launch.function, launch.parameters);
  if (!pointers) return CUDA_ERROR_INVALID_VALUE;
  const auto& grid = launch.frame.grid;
  const auto& block = launch.frame.block;
  CUDA_LAUNCH_PARAMS one{launch.function, grid[0],         grid[1],  grid[2],
                         block[0],        block[1],        block[2], launch.frame.sharedBytes,
                         launch.stream,   pointers->data()};
  launch.awaitWindow(thread, window);
  return counted(thread, launch.stream,
                 thread.driver.cuLaunchCooperativeKernelMultiDevice(&one, 1, flags));
}

CUresult cuOccupancyMaxActiveClusters(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return askWithConfiguration(thread, in, out, thread.driver.cuOccupancyMaxActiveClusters);
}

CUresult cuOccupancyMaxPotentialClusterSize(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return askWithConfiguration(thread, in, out, thread.driver.cuOccupancyMaxPotentialClusterSize);
}

}  // namespace worker
