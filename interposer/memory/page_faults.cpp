#include "interposer/memory/page_faults.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace interposer {

namespace {

// From linux/userfaultfd.h of Linux 6.6.
constexpr std::uint64_t kMinorShmem = 1 << 10;        // UFFD_FEATURE_MINOR_SHMEM
constexpr std::uint64_t kProtectShmem = 1 << 12;      // UFFD_FEATURE_WP_HUGETLBFS_SHMEM
constexpr std::uint64_t kPoison = 1 << 14;            // UFFD_FEATURE_POISON
constexpr std::uint64_t kRegisterMinor = 1 << 2;      // UFFDIO_REGISTER_MODE_MINOR
constexpr std::uint64_t kContinueProtected = 1 << 1;  // UFFDIO_CONTINUE_MODE_WP
constexpr std::uint64_t kFaultProtected = 1 << 1;     // UFFD_PAGEFAULT_FLAG_WP

/// struct uffdio_continue, and uffdio_poison.
struct RangeCall {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t done;
};
const unsigned long kNew = _IO(0xaa, 0);                      // USERFAULTFD_IOC_NEW
const unsigned long kContinue = _IOWR(0xaa, 7, RangeCall);    // UFFDIO_CONTINUE
const unsigned long kMakePoison = _IOWR(0xaa, 8, RangeCall);  // UFFDIO_POISON

int faults = -1;

/// Repeats the call behind pages that it need not change.
void forPages(unsigned long call, std::uint64_t begin, std::uint64_t end, std::uint64_t mode) {
  while (begin < end) {
    RangeCall arguments{{begin, end - begin}, mode, 0};
    if (ioctl(faults, call, &arguments) == 0) return;
    if (arguments.done > 0) {
      begin += static_cast<std::uint64_t>(arguments.done);
    } else if (errno == EEXIST || arguments.done == -EEXIST) {
      begin += 4096;
    } else if (errno != EAGAIN) {
      return;
    }
  }
}

}  // namespace

bool openPageFaults(int device) {
  const int made = device >= 0 ? ioctl(device, kNew, O_CLOEXEC) : -1;
  if (made < 0) return false;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kMinorShmem | kProtectShmem | kPoison;
  if (ioctl(made, UFFDIO_API, &api) != 0) return close(made), false;
  faults = made;
  return true;
}

void closePageFaults() { close(faults); }

bool followPages(std::uint64_t begin, std::uint64_t end) {
  uffdio_register wanted{};
  wanted.range = {begin, end - begin};
  wanted.mode = kRegisterMinor | UFFDIO_REGISTER_MODE_WP;
  return ioctl(faults, UFFDIO_REGISTER, &wanted) == 0;
}

void unfollowPages(std::uint64_t begin, std::uint64_t end) {
  uffdio_range range{begin, end - begin};
  ioctl(faults, UFFDIO_UNREGISTER, &range);
}

bool takePages(std::uint64_t begin, std::uint64_t end) {
  // Pages that the program has locked, too (Linux 5.18; userfaultfd of managed memory needs 6.6).
  constexpr int kDontNeedLocked = 24;
  return madvise(reinterpret_cast<void*>(begin), end - begin, kDontNeedLocked) == 0;
}

void givePages(std::uint64_t begin, std::uint64_t end, bool writable) {
  forPages(kContinue, begin, end, writable ? 0 : kContinueProtected);
  wakePages(begin, end);
}

void letWritePages(std::uint64_t begin, std::uint64_t end) {
  uffdio_writeprotect range{};
  range.range = {begin, end - begin};
  ioctl(faults, UFFDIO_WRITEPROTECT, &range);
}

void losePages(std::uint64_t begin, std::uint64_t end) {
  forPages(kMakePoison, begin, end, 0);
  wakePages(begin, end);
}

void wakePages(std::uint64_t begin, std::uint64_t end) {
  uffdio_range range{begin, end - begin};
  ioctl(faults, UFFDIO_WAKE, &range);
}

bool awaitPageFault(PageFault& fault) {
  uffd_msg message{};
  for (;;) {
    const ssize_t bytes = read(faults, &message, sizeof message);
    if (bytes < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (bytes != sizeof message || message.event != UFFD_EVENT_PAGEFAULT) continue;
    fault.address = message.arg.pagefault.address;
    fault.isProtected = (message.arg.pagefault.flags & kFaultProtected) != 0;
    fault.writes =
        fault.isProtected || (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0;
    return true;
  }
}

}  // namespace interposer
