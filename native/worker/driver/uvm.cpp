// Disables heterogeneous memory management (HMM), which would let kernels write all memory of this
// process. NVIDIA's driver opens the UVM device with ioctl and finds this function before the C
// library's. It sets the flag that disables HMM when the driver initialises UVM, and counts calls.
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "native/worker/driver/kernel_calls.h"

namespace {

constexpr unsigned long kUvmInitialize = 0x30000001;  // UVM_INITIALIZE of the open kernel module
constexpr std::uint64_t kDisableHmm = 1;

struct UvmInitialize {
  std::uint64_t flags;
  std::uint32_t status;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int ioctl(int file, unsigned long request,
                                                            ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == kUvmInitialize && argument != nullptr)
    static_cast<UvmInitialize*>(argument)->flags |= kDisableHmm;
  worker::kernelCalls.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
}
