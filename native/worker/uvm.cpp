// Heterogeneous memory management would let a kernel write any memory of this process. NVIDIA's driver opens the UVM device through
// ioctl, which it finds here before the C library's: when it initialises UVM, HMM is asked to stay off. On hosts where HMM is off anyway
// nothing changes.
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr unsigned long kUvmInitialize = 0x30000001;  // UVM_INITIALIZE of the open kernel module
constexpr std::uint64_t kDisableHmm = 1;

struct UvmInitialize {
  std::uint64_t flags;
  std::uint32_t status;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == kUvmInitialize && argument != nullptr) static_cast<UvmInitialize*>(argument)->flags |= kDisableHmm;
  return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
}
