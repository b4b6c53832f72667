// Calls that write words of memory in stream order.
#include <atomic>

#include "native/simulator/driver_call.h"
#include "native/simulator/memory.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

DRIVER_CALL cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                    unsigned int flags) {
  return onStream(stream, [&](Context&, Stream& target) -> CUresult {
    if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (addr % sizeof value != 0 || !insideAllocation(addr, sizeof value))
      return CUDA_ERROR_INVALID_VALUE;
    const auto status = captured(target, [&](Work& work) {
      work = WriteWork{addr, value};
      return CUDA_SUCCESS;
    });
    if (status) return *status;
    target.submit([=] {
      std::atomic_ref(*reinterpret_cast<cuuint32_t*>(addr)).store(value, std::memory_order_release);
    });
    return CUDA_SUCCESS;
  });
}
