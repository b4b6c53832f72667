#include "wire/memory_maps.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

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

}  // namespace
