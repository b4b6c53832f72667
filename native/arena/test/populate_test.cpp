#include "native/arena/populate.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A memory file of this size, sealed against `seals`.
int memoryFile(std::size_t bytes, int seals = 0) {
  const int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(ftruncate(file, static_cast<off_t>(bytes)) == 0);
  CHECK(fcntl(file, F_ADD_SEALS, seals) == 0);
  return file;
}

/// Bytes of the file that have pages.
std::size_t populated(int file) {
  struct stat status {};
  CHECK(fstat(file, &status) == 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST_CASE("all pages of a file exist afterwards, and those that existed keep their content") {
  constexpr std::size_t kBytes = 21 * kMiB + 12345;
  const int file = memoryFile(kBytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  CHECK(pwrite(file, "kept", 4, 5 * kMiB) == 4);
  CHECK(arena::populate(file, kBytes).empty());
  CHECK(populated(file) >= kBytes);
  char content[4];
  CHECK(pread(file, content, 4, 5 * kMiB) == 4);
  CHECK(std::string(content, 4) == "kept");
  close(file);
}

TEST_CASE("a range is populated without the kernel's help") {
  const int file = memoryFile(3 * kMiB);
  void* const mapped = mmap(nullptr, 3 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  arena::populateByTouch(static_cast<std::byte*>(mapped), 3 * kMiB);
  CHECK(populated(file) == 3 * kMiB);
  munmap(mapped, 3 * kMiB);
  close(file);
}

TEST_CASE("a file that is shorter, or cannot be written, is refused with the reason") {
  const int shorter = memoryFile(kMiB);
  CHECK(arena::populate(shorter, 4 * kMiB) == "Bad address");
  const int sealed = memoryFile(kMiB, F_SEAL_WRITE);
  CHECK(arena::populate(sealed, kMiB) == "it cannot be mapped: Operation not permitted");
  close(shorter);
  close(sealed);
}

}  // namespace
