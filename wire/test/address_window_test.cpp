// The window of shared addresses: reserved once, allocated first fit, and a memory file seen at one
// address by two processes.
#include "wire/address_window.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "test/unit/program.h"

namespace wire {
namespace {

constexpr std::size_t kPage = 4096;

/// The window of the test cases below. Null if none is free; the test case is then skipped.
AddressWindow* openWindow() {
  static AddressWindow window;
  static const bool isOpen = window.open();
  if (!isOpen) unit::skip("no window is free (ThreadSanitizer takes most addresses)");
  return isOpen ? &window : nullptr;
}

TEST_CASE("a range contains the addresses from its begin to before its end") {
  const AddressRange range{100, 200};
  CHECK(range.contains(100, 100));
  CHECK(range.contains(199, 1));
  CHECK(range.contains(100, 0));
  CHECK(!range.contains(99, 1));
  CHECK(!range.contains(200, 0));
  CHECK(!range.contains(100, 101));
  CHECK(!range.contains(150, ~std::uint64_t{0}));
}

TEST_CASE("candidate windows are aligned to pages and lie outside the ranges of device memory") {
  for (const AddressRange& window : windowCandidates()) {
    CHECK(window.begin < window.end);
    CHECK(window.end <= std::uint64_t{1} << 47);
    CHECK(window.begin % kPage == 0);
    CHECK(window.end % kPage == 0);
    for (const AddressRange& device : deviceRanges())
      CHECK((window.end <= device.begin || device.end <= window.begin));
  }
}

TEST_CASE("a range that is in use cannot be reserved") {
  if (openWindow() == nullptr) return;
  AddressWindow first, second;
  CHECK(first.open());
  CHECK(second.open());
  CHECK(first.range().begin != second.range().begin);
  CHECK(!reserve(first.range()));
  CHECK(!reserve({first.range().begin, first.range().begin + kPage}));
  const auto ours = reinterpret_cast<std::uint64_t>(&first) & ~(kPage - 1);
  CHECK(!reserve({ours, ours + kPage}));
  CHECK(!reserve({ours, ours}));
}

TEST_CASE("a window gives the first gap that is large enough") {
  AddressWindow* opened = openWindow();
  if (opened == nullptr) return;
  AddressWindow& window = *opened;
  const std::uint64_t begin = window.range().begin;
  const std::uint64_t a = window.allocate(1), b = window.allocate(kPage + 1),
                      c = window.allocate(kPage);
  CHECK(a == begin);
  CHECK(b == a + kPage);
  CHECK(c == b + 2 * kPage);
  window.release(b);
  CHECK(window.allocate(3 * kPage) == c + kPage);
  CHECK(window.allocate(kPage) == b);
  CHECK(window.allocate(kPage) == b + kPage);
  window.release(a);
  CHECK(window.allocate(kPage) == a);
  CHECK(window.allocate(0) == 0);
  CHECK(window.allocate(~std::size_t{0}) == 0);
  CHECK(window.allocate(window.range().end - begin) == 0);
  for (const std::uint64_t used : {a, b, b + kPage, c, c + kPage}) window.release(used);
  CHECK(window.allocate(window.range().end - begin) == begin);
  window.release(begin);
}

TEST_CASE("a window that is not open gives no address") {
  AddressWindow window;
  CHECK(window.allocate(1) == 0);
}

// The child inherits the reservation; a worker reserves the window itself.
TEST_CASE("a memory file has one address in two processes") {
  AddressWindow* opened = openWindow();
  if (opened == nullptr) return;
  AddressWindow& window = *opened;
  const int file = memfd_create("shared", MFD_CLOEXEC);
  CHECK(file >= 0);
  CHECK(ftruncate(file, 2 * kPage) == 0);
  const std::uint64_t at = window.allocate(2 * kPage);
  auto* text = reinterpret_cast<char*>(at);
  const pid_t child = fork();
  if (child == 0) {
    const bool mapped = mapShared(at, 2 * kPage, file);
    if (mapped) std::strcpy(text + kPage, "written by the child");
    _exit(mapped && unmapShared(at, 2 * kPage) ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(mapShared(at, 2 * kPage, file));
  CHECK(std::strcmp(text + kPage, "written by the child") == 0);
  CHECK(unmapShared(at, 2 * kPage));
  CHECK(!reserve({at, at + kPage}));
  CHECK(!mapShared(at, kPage, -1));
  close(file);
}

}  // namespace
}  // namespace wire
