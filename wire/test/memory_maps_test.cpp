#include "wire/memory_maps.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "test/unit/program.h"

namespace {

constexpr std::uint64_t kPage = 4096;

TEST_CASE("mappings are described as they are") {
  const int file = memfd_create("maps", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, 4 * kPage) == 0);
  void* memory =
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  mmap(reinterpret_cast<void*>(begin + kPage), kPage, PROT_READ, MAP_SHARED | MAP_FIXED, file,
       2 * kPage);
  const auto maps = wire::memoryMaps(begin, begin + 3 * kPage);
  REQUIRE(maps.size() == 3);
  CHECK(!maps[0].shared);
  CHECK(maps[0].inode == 0);
  CHECK(maps[0].protection == (PROT_READ | PROT_WRITE));
  CHECK(maps[1].shared);
  CHECK(maps[1].begin == begin + kPage);
  CHECK(maps[1].end == begin + 2 * kPage);
  CHECK(maps[1].offset == 2 * kPage);
  CHECK(maps[1].protection == PROT_READ);
  CHECK(maps[1].path.find("maps") != std::string::npos);
  CHECK(wire::isMapped(begin, begin + 4 * kPage, PROT_READ));
  CHECK(!wire::isMapped(begin, begin + 4 * kPage, PROT_WRITE));
  munmap(reinterpret_cast<void*>(begin + 2 * kPage), kPage);
  CHECK(!wire::isMapped(begin, begin + 4 * kPage, PROT_READ));
  munmap(memory, 4 * kPage);
  close(file);
}

bool kernelAnswersForOneMapping() {
  utsname system{};
  int major = 0, minor = 0;
  uname(&system);
  std::sscanf(system.release, "%d.%d", &major, &minor);
  return major > 6 || (major == 6 && minor >= 11);
}

/// Bytes that this process has read from files.
std::uint64_t bytesRead() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  file >> name >> bytes;
  return name == "rchar:" ? bytes : 0;
}

TEST_CASE("a question about a range does not read all mappings") {
  if (!kernelAnswersForOneMapping()) return unit::skip("the kernel is older than 6.11");
  constexpr std::uint64_t kPages = 2000;
  void* memory = mmap(nullptr, kPages * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  for (std::uint64_t page = 0; page < kPages; page += 2)
    mprotect(reinterpret_cast<void*>(begin + page * kPage), kPage, PROT_READ | PROT_WRITE);
  const std::uint64_t before = bytesRead();
  REQUIRE(before > 0);
  CHECK(wire::isMapped(begin, begin + kPages * kPage, PROT_READ));
  CHECK(wire::isMapped(begin, begin + kPage, PROT_READ | PROT_WRITE));
  CHECK(!wire::isMapped(begin, begin + 2 * kPage, PROT_READ | PROT_WRITE));
  // Each mapping is a line of more than 40 bytes.
  CHECK(bytesRead() - before < kPages * 40);
  munmap(memory, kPages * kPage);
}

}  // namespace
