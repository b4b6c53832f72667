// Launches from kernels: <<<>>> in device code asks for a parameter buffer, fills it and launches.
#include <utility>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/runtime/children.h"
#include "native/simulator/ptx/runtime/device_runtime.h"

namespace simulator::ptx {
namespace {

/// Grids below the one that the host launched. It protects the stack, since each level is a call.
/// The 24 levels of the first device runtime are no limit of the second.
constexpr unsigned kMostDepth = 1024;

std::array<std::uint32_t, 3> dimensions(const RuntimeCall& call, std::size_t word) {
  return {call.number(word), static_cast<std::uint32_t>(call.arguments[word] >> 32),
          call.number(word + 1)};
}

Launch launchOf(const PreparedLaunch& prepared) {
  Launch launch;
  launch.program = prepared.program;
  launch.kernel = prepared.kernel;
  launch.grid = prepared.grid;
  launch.block = prepared.block;
  launch.dynamicSharedBytes = prepared.dynamicSharedBytes;
  const auto& cluster = prepared.program->kernels()[prepared.kernel].requiredClusterDim;
  if (cluster[0] != 0) launch.cluster = cluster;
  return launch;
}

std::uint64_t check(const Run& run, const PreparedLaunch& prepared) {
  if (run.depth >= kMostDepth) return kErrorLaunchMaxDepthExceeded;
  const CUresult status = run.environment.runtime->checkLaunch(launchOf(prepared));
  return status == CUDA_ERROR_INVALID_VALUE ? kErrorInvalidConfiguration
                                            : static_cast<std::uint64_t>(status);
}

/// Takes one of the places for launches that have not begun. When all are taken, work that may
/// begin is executed here, before its launching kernel ends. A GPU executes it at the same time.
bool takePlace(Warp& warp) {
  Run& run = *warp.block->run;
  Family& family = run.family;
  const std::uint64_t most =
      run.environment.runtime->limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT).value_or(0);
  while (!family.stopped()) {
    if (family.pending.fetch_add(1) < most) return true;
    --family.pending;
    if (!warp.processor->paused([&] { return run.children().runOne(); })) return false;
  }
  return false;
}

/// Answers an address, or 0 with the error in `error`.
std::uint64_t takeBuffer(Warp& warp, std::uint64_t bytes, std::uint64_t& error) {
  Run& run = *warp.block->run;
  error = kErrorLaunchPendingCountExceeded;
  if (!takePlace(warp)) return 0;
  const std::uint64_t buffer = run.environment.runtime->allocate(bytes == 0 ? 1 : bytes);
  if (buffer == 0) --run.family.pending;
  return buffer;
}

/// Makes the launch a piece of work of the stream.
std::uint64_t launch(const RuntimeCall& call, const PreparedLaunch& prepared, std::uint64_t buffer,
                     std::uint64_t stream) {
  Run& run = *call.warp.block->run;
  Family& family = run.family;
  const unsigned depth = run.depth + 1;
  const std::uint64_t status = call.submit(
      stream, {[&family, prepared, buffer, depth] {
                 --family.pending;
                 Launch child = launchOf(prepared);
                 child.parameters = {reinterpret_cast<const std::byte*>(buffer),
                                     prepared.program->kernels()[prepared.kernel].parameterBytes};
                 runGrid(family, child, depth);
                 family.environment.runtime->release(buffer);
               },
               nullptr, nullptr});
  if (status == CUDA_SUCCESS) return status;
  --family.pending;
  family.environment.runtime->release(buffer);
  return status;
}

std::uint64_t launchPrepared(const RuntimeCall& call, std::uint64_t stream) {
  Family& family = call.warp.block->run->family;
  std::unique_lock lock(family.mutex);
  const auto node = family.prepared.extract(call.arguments[0]);
  lock.unlock();
  if (node.empty()) return CUDA_ERROR_INVALID_VALUE;
  return launch(call, node.mapped(), node.key(), stream);
}

/// void* func, void* buffer, dim3 grid, dim3 block, unsigned shared, stream. The buffer is one of
/// getParameterBuffer().
std::uint64_t launchNamed(const RuntimeCall& call, std::uint64_t stream) {
  Family& family = call.warp.block->run->family;
  std::unique_lock lock(family.mutex);
  const auto node = family.prepared.extract(call.arguments[1]);
  lock.unlock();
  if (node.empty()) return CUDA_ERROR_INVALID_VALUE;
  const auto [program, kernel] = LinkedProgram::kernelAt(call.arguments[0]);
  const PreparedLaunch prepared{program, kernel, dimensions(call, 2), dimensions(call, 4),
                                call.number(6)};
  const std::uint64_t error =
      program == nullptr ? kErrorInvalidDeviceFunction : check(*call.warp.block->run, prepared);
  if (error == CUDA_SUCCESS) return launch(call, prepared, node.key(), stream);
  --family.pending;
  family.environment.runtime->release(node.key());
  return error;
}

}  // namespace

/// size_t alignment, size_t size
std::uint64_t getParameterBuffer(const RuntimeCall& call) {
  Run& run = *call.warp.block->run;
  std::uint64_t error = CUDA_SUCCESS;
  const std::uint64_t buffer = takeBuffer(call.warp, call.arguments[1], error);
  if (buffer == 0) return call.lastError() = static_cast<std::uint32_t>(error), 0;
  const std::lock_guard lock(run.family.mutex);
  run.family.prepared[buffer] = {};
  return buffer;
}

/// void* func, dim3 grid, dim3 block, unsigned shared
std::uint64_t getParameterBufferV2(const RuntimeCall& call) {
  Run& run = *call.warp.block->run;
  const auto [program, kernel] = LinkedProgram::kernelAt(call.arguments[0]);
  const PreparedLaunch prepared{program, kernel, dimensions(call, 1), dimensions(call, 3),
                                call.number(5)};
  std::uint64_t buffer = 0;
  std::uint64_t error = program == nullptr ? kErrorInvalidDeviceFunction : check(run, prepared);
  if (error == CUDA_SUCCESS)
    buffer = takeBuffer(call.warp, program->kernels()[kernel].parameterBytes, error);
  if (buffer == 0) return call.lastError() = static_cast<std::uint32_t>(error), 0;
  const std::lock_guard lock(run.family.mutex);
  run.family.prepared[buffer] = prepared;
  return buffer;
}

std::uint64_t launchDevice(const RuntimeCall& call) { return launchNamed(call, call.arguments[7]); }

std::uint64_t launchDevicePerThread(const RuntimeCall& call) {
  return launchNamed(call, perThread(call.arguments[7]));
}

/// void* buffer, stream
std::uint64_t launchDeviceV2(const RuntimeCall& call) {
  return launchPrepared(call, call.arguments[1]);
}

std::uint64_t launchDeviceV2PerThread(const RuntimeCall& call) {
  return launchPrepared(call, perThread(call.arguments[1]));
}

}  // namespace simulator::ptx
