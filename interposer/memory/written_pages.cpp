#include "interposer/memory/written_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace interposer {

namespace {

constexpr std::uint64_t kPage = 4096;
/// A comparison of less is faster than the question.
constexpr std::uint64_t kLeastBytes = 128 << 10;

// From linux/userfaultfd.h and linux/fs.h of Linux 6.7.
constexpr std::uint64_t kWriteProtectAsync = 1 << 15;  // UFFD_FEATURE_WP_ASYNC
constexpr std::uint64_t kIsWritten = 1 << 1;           // PAGE_IS_WRITTEN

struct PageRegion {
  std::uint64_t begin, end, categories;
};
struct ScanArguments {
  std::uint64_t size, flags, begin, end, walkEnd, regions, regionCount, mostPages;
  std::uint64_t invertedCategories, allOf, anyOf, returned;
};
constexpr std::uint64_t kProtectMatching = 1 << 0;
constexpr std::uint64_t kOnlyIfAsync = 1 << 1;
const unsigned long kPagemapScan = _IOWR('f', 16, ScanArguments);

/// Both are of this process, and stay open. -1: not to be had.
struct Descriptors {
  int faults = -1;
  int pages = -1;
};

Descriptors openDescriptors() {
  Descriptors made;
  made.faults =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  made.pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWriteProtectAsync;
  if (made.pages >= 0 && made.faults >= 0 && ioctl(made.faults, UFFDIO_API, &api) == 0) return made;
  if (made.faults >= 0) close(made.faults);
  if (made.pages >= 0) close(made.pages);
  return {};
}

const Descriptors& descriptors() {
  static const Descriptors opened = openDescriptors();
  return opened;
}

bool follow(std::uint64_t begin, std::uint64_t end) {
  if (end < begin + kLeastBytes || descriptors().faults < 0) return false;
  uffdio_register wanted{};
  wanted.range = {begin, end - begin};
  wanted.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(descriptors().faults, UFFDIO_REGISTER, &wanted) == 0;
}

}  // namespace

WrittenPages::WrittenPages(std::uint64_t begin, std::uint64_t end)
    : begin_(begin),
      end_(end),
      firstPage_((begin + kPage - 1) & ~(kPage - 1)),
      pagesEnd_(end & ~(kPage - 1)),
      follows_(follow(firstPage_, pagesEnd_)) {}

/// Asking and protecting the pages again are one step for the kernel, so no write is lost. It fails
/// if the program has closed the descriptors.
bool WrittenPages::takeFollowed(
    const std::function<void(std::uint64_t, std::uint64_t)>& body) const {
  PageRegion regions[64];
  for (std::uint64_t at = firstPage_; at < pagesEnd_;) {
    ScanArguments scan{};
    scan.size = sizeof scan;
    scan.flags = kProtectMatching | kOnlyIfAsync;
    scan.begin = at;
    scan.end = pagesEnd_;
    scan.regions = reinterpret_cast<std::uint64_t>(regions);
    scan.regionCount = std::size(regions);
    scan.allOf = scan.returned = kIsWritten;
    const int found = ioctl(descriptors().pages, kPagemapScan, &scan);
    if (found < 0 || scan.walkEnd <= at) return false;
    for (int i = 0; i < found; ++i) body(regions[i].begin, regions[i].end);
    at = scan.walkEnd;
  }
  return true;
}

void WrittenPages::take(const std::function<void(std::uint64_t, std::uint64_t)>& body) {
  follows_ = follows_ && takeFollowed(body);
  if (!follows_) return body(begin_, end_);
  if (begin_ < firstPage_) body(begin_, firstPage_);
  if (pagesEnd_ < end_) body(pagesEnd_, end_);
}

}  // namespace interposer
