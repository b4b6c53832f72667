#include "native/simulator/kernel_services.h"

#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/graph_condition.h"
#include "native/simulator/launch_limits.h"
#include "native/simulator/occupancy.h"

namespace simulator {

std::shared_ptr<const Function> KernelServices::find(const Program& program,
                                                     std::size_t kernel) const {
  const std::lock_guard lock(context_.mutex);
  for (const auto& module : context_.modules) {
    if (module->program.get() == &program) return {module, module->functions[kernel].get()};
  }
  return nullptr;
}

std::uint64_t KernelServices::allocate(std::uint64_t bytes) {
  return context_.launchBuffers.allocate(bytes);
}

void KernelServices::release(std::uint64_t address) { context_.launchBuffers.release(address); }

CUresult KernelServices::checkLaunch(const Launch& launch) {
  const auto function = find(*launch.program, launch.kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest request;
  request.grid = launch.grid;
  request.block = launch.block;
  request.cluster = launch.cluster;
  request.dynamicShared = launch.dynamicSharedBytes;
  return check(*function, request);
}

bool KernelServices::setCondition(std::uint64_t handle, std::uint32_t value) {
  const auto condition = findCondition(handle);
  if (condition == nullptr || &condition->context != &context_) return false;
  condition->value = value;
  return true;
}

std::optional<std::size_t> KernelServices::limit(int limit) { return limitOf(context_, limit); }

std::optional<int> KernelServices::deviceAttribute(int attribute) {
  int value = 0;
  return simulator::deviceAttribute(context_.device.described, attribute, value)
             ? std::optional(value)
             : std::nullopt;
}

int KernelServices::functionAttribute(const Program& program, std::size_t kernel, int attribute) {
  const auto function = find(program, kernel);
  return function == nullptr ? 0
                             : effective(*function, static_cast<CUfunction_attribute>(attribute));
}

int KernelServices::blocksPerMultiprocessor(const Program& program, std::size_t kernel,
                                            unsigned threads, std::size_t dynamicShared) {
  const auto function = find(program, kernel);
  return function == nullptr ? 0
                             : static_cast<int>(simulator::blocksPerMultiprocessor(
                                   *function, threads, dynamicShared));
}

int KernelServices::cacheConfig() {
  const std::lock_guard lock(context_.mutex);
  return context_.cacheConfig;
}

int KernelServices::device() { return context_.device.ordinal; }

int KernelServices::deviceCount() { return static_cast<int>(devices().size()); }

int KernelServices::version() {
  int version = 0;
  return cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

}  // namespace simulator
