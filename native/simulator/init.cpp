// cuInit, the version, and what every call checks first.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "native/simulator/attributes.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"

namespace simulator {
namespace {

enum class State { fresh, ready, forked };
std::atomic<State> state{State::fresh};
std::mutex initialising;
thread_local bool insideHostFunction = false;

/// A child of fork has none of the threads that execute streams, so as natively the driver is dead there.
void afterForkInChild() {
  if (state.load() == State::ready) state.store(State::forked);
}

/// "12.4", or anything else for the version of this library; for trying what a node with another driver means.
int driverVersionFromEnvironment() {
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATED_DRIVER_VERSION");
  int major = 0, minor = 0;
  return text != nullptr && std::sscanf(text, "%2d.%1d", &major, &minor) == 2 ? major * 1000 + minor * 10 : kNewestApi;
}

}  // namespace

CUresult callable() {
  if (state.load(std::memory_order_acquire) != State::ready) return CUDA_ERROR_NOT_INITIALIZED;
  return insideHostFunction ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult currentContext(Context*& context) {
  const auto& stack = contextStack();
  if (stack.empty() || stack.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context = stack.back();
  if (context->alive.load()) return CUDA_SUCCESS;
  return context->everAlive.load() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

HostFunctionScope::HostFunctionScope() { insideHostFunction = true; }
HostFunctionScope::~HostFunctionScope() { insideHostFunction = false; }

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuInit(unsigned int Flags) {
  return guarded([&]() -> CUresult {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(initialising);
    if (state.load() == State::forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (state.load() == State::ready) return CUDA_SUCCESS;
    makeDevices();
    if (devices().empty()) return CUDA_ERROR_NO_DEVICE;
    pthread_atfork(nullptr, nullptr, afterForkInChild);
    state.store(State::ready, std::memory_order_release);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driverVersionFromEnvironment();
  return CUDA_SUCCESS;
}
