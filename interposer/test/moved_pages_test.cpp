#include "interposer/memory/moved_pages.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "wire/memory_maps.h"

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPages = 8;

/// Private memory of eight pages, and a memory file of that size.
struct Memory {
  Memory() {
    data = static_cast<char*>(
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::uint64_t i = 0; i < kPages; ++i) data[i * kPage] = static_cast<char>('a' + i);
    file = memfd_create("moved", MFD_CLOEXEC);
    REQUIRE(ftruncate(file, kPages * kPage) == 0);
  }
  ~Memory() {
    munmap(data, kPages * kPage);
    close(file);
  }
  std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(data); }
  std::uint64_t end() const { return begin() + kPages * kPage; }
  bool isShared(std::uint64_t page) const {
    const std::uint64_t at = begin() + page * kPage;
    return wire::memoryMaps(at, at + kPage).front().shared;
  }
  bool isWhole() const {
    for (std::uint64_t i = 0; i < kPages; ++i) {
      if (data[i * kPage] != static_cast<char>('a' + i)) return false;
    }
    return true;
  }
  long fileBlocks() const {
    struct stat status {};
    fstat(file, &status);
    return static_cast<long>(status.st_blocks);
  }
  char* data;
  int file;
};

TEST_CASE_FIXTURE(Memory, "pages move onto the file and come back") {
  const interposer::MovedFile moved = interposer::moveToFile(begin() + kPage, end() - kPage, file);
  REQUIRE(moved);
  CHECK(isWhole());
  CHECK(!isShared(0));
  CHECK(isShared(1));
  CHECK(isShared(kPages - 2));
  CHECK(!isShared(kPages - 1));
  data[kPage + 1] = 'x';
  char seen = 0;
  CHECK(pread(file, &seen, 1, 1) == 1);
  CHECK(seen == 'x');
  interposer::bringBack(moved);
  CHECK(isWhole());
  CHECK(data[kPage + 1] == 'x');
  CHECK(!isShared(1));
  CHECK(fileBlocks() == 0);  // although the file is open
  data[kPage] = 'z';
  CHECK(data[kPage] == 'z');
}

TEST_CASE_FIXTURE(Memory, "rights stay as they are") {
  mprotect(data + 2 * kPage, kPage, PROT_READ);
  const interposer::MovedFile moved = interposer::moveToFile(begin(), end(), file);
  REQUIRE(moved);
  const auto rights = [&] {
    return wire::memoryMaps(begin() + 2 * kPage, begin() + 3 * kPage).front().protection;
  };
  CHECK(rights() == PROT_READ);
  CHECK(isWhole());
  interposer::bringBack(moved);
  CHECK(rights() == PROT_READ);
  CHECK(isWhole());
}

TEST_CASE_FIXTURE(Memory, "what the program unmapped or moved is respected") {
  const interposer::MovedFile moved = interposer::moveToFile(begin(), end(), file);
  REQUIRE(moved);
  void* elsewhere = mremap(data + 4 * kPage, kPage, 4 * kPage, MREMAP_MAYMOVE);
  REQUIRE(elsewhere != MAP_FAILED);
  mmap(data + 4 * kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
       0);
  data[4 * kPage] = 'n';
  munmap(data + 6 * kPage, kPage);
  void* longer = mremap(data + 7 * kPage, kPage, 2 * kPage, MREMAP_MAYMOVE);
  REQUIRE(longer != MAP_FAILED);
  interposer::bringBack(moved);
  CHECK(*static_cast<char*>(longer) == 'h');
  static_cast<char*>(longer)[kPage] = 'l';
  munmap(longer, 2 * kPage);
  CHECK(data[4 * kPage] == 'n');
  CHECK(data[5 * kPage] == 'f');
  CHECK(*static_cast<char*>(elsewhere) == 'e');
  CHECK(!wire::isMapped(begin() + 6 * kPage, begin() + 7 * kPage, 0));
  munmap(elsewhere, 4 * kPage);
}

TEST_CASE_FIXTURE(Memory, "unreadable pages are not moved") {
  mprotect(data + 3 * kPage, kPage, PROT_NONE);
  CHECK(!interposer::moveToFile(begin(), end(), file));
  mprotect(data + 3 * kPage, kPage, PROT_READ | PROT_WRITE);
  CHECK(isWhole());
  CHECK(!isShared(0));
  data[0] = 'a';
}

TEST_CASE_FIXTURE(Memory, "no write of another thread is lost") {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> written{0};
  auto* word = reinterpret_cast<volatile unsigned*>(data + 3 * kPage + 16);
  std::thread writer([&] {
    while (!stop) *word = ++written;
  });
  for (int round = 0; round < 300; ++round) {
    const interposer::MovedFile moved = interposer::moveToFile(begin(), end(), file);
    CHECK(moved);
    interposer::bringBack(moved);
  }
  stop = true;
  writer.join();
  CHECK(*word == written);
  CHECK(isWhole());
}

TEST_CASE_FIXTURE(Memory, "a forked child gets a copy, and the parent keeps the file") {
  const interposer::MovedFile moved = interposer::moveToFile(begin(), end(), file);
  REQUIRE(moved);
  const auto maps = interposer::mappingsOf(moved);
  const pid_t child = fork();
  if (child == 0) {
    interposer::copyInChild(maps, moved.bytes);
    const bool own = isWhole() && !isShared(0);
    data[0] = 'c';
    _exit(own ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(isWhole());
  CHECK(isShared(0));
  interposer::bringBack(moved);
  CHECK(isWhole());
}

std::atomic<int> seenByProgram{0};
void handler(int, siginfo_t* info, void*) {
  ++seenByProgram;
  mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(info->si_addr) & ~(kPage - 1)),
           kPage, PROT_READ | PROT_WRITE);
}

TEST_CASE_FIXTURE(Memory, "the program's own handler of faults is called for its faults") {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  const interposer::MovedFile moved = interposer::moveToFile(begin(), end(), file);
  CHECK(seenByProgram == 0);
  mprotect(data, kPage, PROT_READ);
  data[1] = 'p';
  CHECK(seenByProgram == 1);
  interposer::bringBack(moved);
  CHECK(data[1] == 'p');
}

}  // namespace
