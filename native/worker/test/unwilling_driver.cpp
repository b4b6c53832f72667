// In front of the simulated driver: copies of memory whose first word is an order fail, or end the
// worker.
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "cuda_abi.h"
#include "native/worker/test/unwilling_moves.h"

namespace {

using worker::test::Order;

template <class Function>
Function* behind(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

Order orderAt(const void* memory, size_t bytes) {
  Order order{};
  if (bytes >= sizeof order) std::memcpy(&order, memory, sizeof order);
  return order;
}

}  // namespace

extern "C" CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                         CUstream stream) {
  static auto* const next = behind(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2");
  switch (orderAt(from, bytes)) {
    case Order::failToGpu: return usleep(300'000), CUDA_ERROR_OPERATING_SYSTEM;
    case Order::dieToGpu: kill(getpid(), SIGKILL); [[fallthrough]];
    default: return next(to, from, bytes, stream);
  }
}

extern "C" CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                         CUstream stream) {
  static auto* const next = behind(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2");
  static auto* const wait = behind(cuStreamSynchronize, "cuStreamSynchronize");
  const CUresult status = next(to, from, bytes, stream);
  wait(stream);
  switch (orderAt(to, bytes)) {
    case Order::failToHost: return CUDA_ERROR_OPERATING_SYSTEM;
    case Order::dieToHost: kill(getpid(), SIGKILL); [[fallthrough]];
    default: return status;
  }
}
