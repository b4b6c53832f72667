// The window: reserved, never twice, first fit, and a memory file seen at one address by two
// processes.
#include "wire/address_window.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "wire/test/check.h"

namespace wire {
namespace {

constexpr std::size_t kPage = 4096;

void rangesContain() {
  const AddressRange range{100, 200};
  CHECK(range.contains(100, 100) && range.contains(199, 1) && range.contains(100, 0));
  CHECK(!range.contains(99, 1) && !range.contains(200, 0) && !range.contains(100, 101) &&
        !range.contains(150, ~std::uint64_t{0}));
}

void candidatesAreApart() {
  for (const AddressRange& window : windowCandidates()) {
    CHECK(window.begin < window.end && window.end <= std::uint64_t{1} << 47 &&
          window.begin % kPage == 0 && window.end % kPage == 0);
    for (const AddressRange& device : deviceRanges())
      CHECK(window.end <= device.begin || device.end <= window.begin);
  }
}

void nothingIsReservedTwice() {
  AddressWindow first, second;
  CHECK(first.open() && second.open());
  CHECK(first.range().begin != second.range().begin);
  CHECK(!reserve(first.range()) && !reserve({first.range().begin, first.range().begin + kPage}));
  const auto ours = reinterpret_cast<std::uint64_t>(&first) & ~(kPage - 1);
  CHECK(!reserve({ours, ours + kPage}) && !reserve({ours, ours}));
}

void allocatesFirstFit(AddressWindow& window) {
  const std::uint64_t begin = window.range().begin;
  const std::uint64_t a = window.allocate(1), b = window.allocate(kPage + 1),
                      c = window.allocate(kPage);
  CHECK(a == begin && b == a + kPage && c == b + 2 * kPage);
  window.release(b);
  CHECK(window.allocate(3 * kPage) == c + kPage);
  CHECK(window.allocate(kPage) == b && window.allocate(kPage) == b + kPage);
  window.release(a);
  CHECK(window.allocate(kPage) == a);
  CHECK(window.allocate(0) == 0 && window.allocate(~std::size_t{0}) == 0);
  CHECK(window.allocate(window.range().end - begin) == 0);
  for (const std::uint64_t used : {a, b, b + kPage, c, c + kPage}) window.release(used);
  CHECK(window.allocate(window.range().end - begin) == begin);
  window.release(begin);
}

void aClosedWindowIsFull() {
  AddressWindow window;
  CHECK(window.allocate(1) == 0);
}

// The child reserves the window itself, as a worker does; here by inheriting it.
void bothProcessesSeeOneAddress(AddressWindow& window) {
  const int file = memfd_create("shared", MFD_CLOEXEC);
  CHECK(file >= 0 && ftruncate(file, 2 * kPage) == 0);
  const std::uint64_t at = window.allocate(2 * kPage);
  auto* text = reinterpret_cast<char*>(at);
  const pid_t child = fork();
  if (child == 0) {
    const bool mapped = mapShared(at, 2 * kPage, file);
    if (mapped) std::strcpy(text + kPage, "written by the child");
    _exit(mapped && unmapShared(at, 2 * kPage) ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(mapShared(at, 2 * kPage, file));
  CHECK(std::strcmp(text + kPage, "written by the child") == 0);
  CHECK(unmapShared(at, 2 * kPage) && !reserve({at, at + kPage}));
  CHECK(!mapShared(at, kPage, -1));
  close(file);
}

}  // namespace
}  // namespace wire

int main() {
  wire::rangesContain();
  wire::candidatesAreApart();
  wire::aClosedWindowIsFull();
  wire::AddressWindow window;
  if (!window.open()) {
    std::fputs(
        "skipped: none of the windows is free here (ThreadSanitizer keeps most addresses to "
        "itself)\n",
        stderr);
    return wire::test::failures == 0 ? wire::test::kSkipped : 1;
  }
  wire::nothingIsReservedTwice();
  wire::allocatesFirstFit(window);
  wire::bothProcessesSeeOneAddress(window);
  return wire::test::checkedResult();
}
