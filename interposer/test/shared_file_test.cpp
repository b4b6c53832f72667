#include "interposer/memory/shared_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr std::uint64_t kPage = 4096;

struct Mapped {
  explicit Mapped(int file, int rights = PROT_READ | PROT_WRITE) {
    REQUIRE(ftruncate(file, 3 * kPage) == 0);
    memory = mmap(nullptr, kPage, rights, MAP_SHARED, file, kPage);
    REQUIRE(memory != MAP_FAILED);
  }
  ~Mapped() { munmap(memory, kPage); }
  wire::MemoryMap map() const {
    const auto begin = reinterpret_cast<std::uint64_t>(memory);
    return wire::memoryMaps(begin, begin + kPage).front();
  }
  /// Whether the opened file is the mapped one.
  bool opens() const {
    const int file = interposer::openFileOf(map());
    if (file < 0) return false;
    *static_cast<volatile char*>(memory) = 'm';
    char seen = 0;
    CHECK(pread(file, &seen, 1, kPage) == 1);
    close(file);
    return seen == 'm';
  }
  void* memory;
};

TEST_CASE("a memory file is found through its descriptor") {
  const int file = memfd_create("shared", MFD_CLOEXEC);
  const Mapped mapped(file);
  CHECK(mapped.opens());
  close(file);
  CHECK(interposer::openFileOf(mapped.map()) == -1);
}

TEST_CASE("a file is found by its path, but not one that replaced it") {
  char path[] = "/tmp/shared-file-test-XXXXXX";
  const int file = mkstemp(path);
  const Mapped mapped(file);
  close(file);
  CHECK(mapped.opens());
  unlink(path);
  CHECK(interposer::openFileOf(mapped.map()) == -1);
  const int other = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(interposer::openFileOf(mapped.map()) == -1);
  close(other);
  unlink(path);
}

TEST_CASE("shared memory without a file is not found") {
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  CHECK(interposer::openFileOf(wire::memoryMaps(begin, begin + kPage).front()) == -1);
  munmap(memory, kPage);
}

}  // namespace
