#include "interposer/memory/written_pages.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "test/unit/program.h"

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPages = 256;

struct Memory {
  Memory()
      : data(static_cast<char*>(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::fill_n(data, kPages * kPage, 'x');
  }
  ~Memory() { munmap(data, kPages * kPage); }
  std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(data); }
  std::uint64_t end() const { return begin() + kPages * kPage; }
  /// The bytes that it offers, by their distance from the beginning, in pages.
  std::set<std::uint64_t> taken(interposer::WrittenPages& pages) const {
    std::set<std::uint64_t> found;
    pages.take([&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t at = from; at < to; at += kPage) found.insert((at - begin()) / kPage);
    });
    return found;
  }

  char* const data;
};

using Numbers = std::set<std::uint64_t>;

void skipUnlessFollowed(const interposer::WrittenPages& pages) {
  if (!pages.follows()) unit::skip("this kernel does not tell which pages were written");
}

}  // namespace

TEST_CASE("a small range is always taken whole") {
  const Memory memory;
  interposer::WrittenPages pages(memory.begin() + 100, memory.begin() + 3 * kPage);
  for (int round = 0; round < 2; ++round) {
    pages.take([&](std::uint64_t begin, std::uint64_t end) {
      CHECK(begin == memory.begin() + 100);
      CHECK(end == memory.begin() + 3 * kPage);
    });
  }
}

TEST_CASE("only pages that were written since the last time are taken") {
  const Memory memory;
  interposer::WrittenPages pages(memory.begin(), memory.end());
  skipUnlessFollowed(pages);
  CHECK(memory.taken(pages).size() == kPages);
  CHECK(memory.taken(pages).empty());
  memory.data[3 * kPage] = 'y';
  memory.data[200 * kPage + 17] = 'x';  // the same value counts, too
  CHECK(memory.data[100 * kPage] == 'x');
  CHECK(memory.taken(pages) == Numbers{3, 200});
  CHECK(memory.taken(pages).empty());
}

TEST_CASE("more regions than one question tells") {
  const Memory memory;
  interposer::WrittenPages pages(memory.begin(), memory.end());
  skipUnlessFollowed(pages);
  memory.taken(pages);
  for (std::uint64_t page = 0; page < kPages; page += 2) memory.data[page * kPage] = 'y';
  CHECK(memory.taken(pages).size() == kPages / 2);
}

TEST_CASE("writes by a system call and by another thread count") {
  const Memory memory;
  interposer::WrittenPages pages(memory.begin(), memory.end());
  skipUnlessFollowed(pages);
  memory.taken(pages);
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  CHECK(read(zeros, memory.data + 5 * kPage, 2 * kPage) == 2 * kPage);
  close(zeros);
  std::thread([&] { memory.data[9 * kPage] = 'y'; }).join();
  CHECK(memory.taken(pages) == Numbers{5, 6, 9});
}

TEST_CASE("pages that others use, too, are always taken") {
  const Memory memory;
  interposer::WrittenPages first(memory.begin(), memory.begin() + 100 * kPage + 8);
  interposer::WrittenPages second(memory.begin() + 100 * kPage + 8, memory.end());
  skipUnlessFollowed(first);
  memory.taken(first);
  memory.taken(second);
  memory.data[100 * kPage] = memory.data[100 * kPage + 8] = 'y';
  CHECK(memory.taken(first) == Numbers{100});
  CHECK(memory.taken(second) == Numbers{100});
}
