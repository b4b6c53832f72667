#include "native/simulator/driver_call.h"

#include <pthread.h>

#include <atomic>

namespace simulator {
namespace {

std::atomic<DriverState> state{DriverState::uninitialised};
thread_local bool insideHostFunction = false;

void afterForkInChild() {
  if (state.load() == DriverState::ready) state.store(DriverState::forked);
}

}  // namespace

DriverState driverState() { return state.load(std::memory_order_acquire); }

void markDriverReady() {
  pthread_atfork(nullptr, nullptr, afterForkInChild);
  state.store(DriverState::ready, std::memory_order_release);
}

CUresult callable() {
  if (driverState() != DriverState::ready) return CUDA_ERROR_NOT_INITIALIZED;
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
