#include "native/simulator/fault.h"

#include <atomic>

namespace simulator {
namespace {
std::atomic<CUresult> first{CUDA_SUCCESS};
}

CUresult fault() { return first.load(std::memory_order_acquire); }

void setFault(CUresult code) {
  CUresult none = CUDA_SUCCESS;
  first.compare_exchange_strong(none, code);
}

}  // namespace simulator
