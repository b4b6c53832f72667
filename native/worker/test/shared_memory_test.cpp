// Memory files of a hostile client: only a sealed file inside the window is mapped, and only to
// free addresses.
#include "native/worker/session/shared_memory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native/worker/session/memory_file.h"

namespace {

constexpr std::uint64_t kBytes = 16384;

int memoryFile(int seals) {
  const int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(ftruncate(file, kBytes) == 0);
  CHECK(fcntl(file, F_ADD_SEALS, seals) == 0);
  return file;
}

constexpr int kPinned = F_SEAL_SHRINK | F_SEAL_GROW;

/// Shared memory in a window that is open.
struct Opened {
  worker::SharedMemory shared;
  Opened() {
    static wire::AddressWindow window;
    static const bool isOpen = window.open();
    REQUIRE(isOpen);
    shared.window = window.range();
  }
  std::uint64_t begin() const { return shared.window.begin; }
};

TEST_CASE_FIXTURE(Opened, "a sealed file is mapped inside the window, once") {
  shared.put(1, memoryFile(kPinned));
  CHECK(shared.map(1, begin(), kBytes));
  *reinterpret_cast<volatile char*>(begin() + kBytes - 1) = 'x';
  CHECK(shared.contains(begin(), kBytes));
  CHECK(!shared.contains(begin() + 1, kBytes));
  CHECK(!shared.contains(begin() - 1, 1));
  CHECK(!shared.contains(begin(), ~std::uint64_t{0}));

  const struct {
    std::uint64_t address, bytes;
    int seals;
  } wrong[] = {
      {begin(), kBytes, kPinned},                                 // taken
      {begin() + 4096, 4096, kPinned},                            // inside what is taken
      {begin() + (1 << 20) + 1, 4096, kPinned},                   // not a page
      {begin() + (1 << 20), 4095, kPinned},                       // not whole pages
      {begin() + (1 << 20), kBytes + 4096, kPinned},              // more than the file has
      {begin() + (1 << 20), 0, kPinned},                          // nothing
      {shared.window.end - 4096, kBytes, kPinned},                // beyond the window
      {0x10000, kBytes, kPinned},                                 // elsewhere
      {begin() + (1 << 20), ~std::uint64_t{0} & ~4095, kPinned},  // around the end of all addresses
      {begin() + (1 << 20), kBytes, F_SEAL_GROW},  // the client could cut it short later
  };
  for (const auto& [address, bytes, seals] : wrong) {
    shared.put(2, memoryFile(seals));
    CHECK(!shared.map(2, address, bytes));
  }
  CHECK(shared.unmap(begin()));
  CHECK(!shared.unmap(begin()));
  CHECK(!shared.contains(begin(), 1));
}

constexpr std::uint64_t kFree = 0x5200'0000'0000;  // used by nothing else in this process

TEST_CASE_FIXTURE(Opened,
                  "a piece of a file is mapped once, at a free address outside the window") {
  shared.put(20, memoryFile(0));
  CHECK(shared.mapPiece({20, kFree, 8192, 4096}));
  const std::uint64_t device = wire::deviceRanges().front().begin;
  const std::uint64_t own = reinterpret_cast<std::uint64_t>(&shared) & ~std::uint64_t{4095};
  const struct {
    std::uint64_t address, bytes, offset;
  } wrong[] = {
      {kFree, 8192, 0},                                 // taken
      {kFree - 4096, 8192, 0},                          // overlaps it
      {kFree + (1 << 20) + 1, 4096, 0},                 // not a page
      {kFree + (1 << 20), 4095, 0},                     // not whole pages
      {kFree + (1 << 20), 4096, 1},                     // not a page of the file
      {kFree + (1 << 20), 0, 0},                        // nothing
      {kFree + (1 << 20), kBytes, 4096},                // more than the file has
      {kFree + (1 << 20), 4096, ~std::uint64_t{4095}},  // around the end of all offsets
      {begin(), 4096, 0},                               // in the window
      {begin() - 4096, 8192, 0},                        // into the window
      {device, 4096, 0},                                // where drivers place memory
      {own, 4096, 0},                                   // memory of the worker
      {0, 4096, 0},                                     //
      {~std::uint64_t{4095}, 4096, 0},                  // not an address of a process
      {kFree + (1 << 20), ~std::uint64_t{4095}, 0},     // around the end of all addresses
  };
  for (const auto& each : wrong) {
    CAPTURE(each.address);
    shared.put(21, memoryFile(0));
    CHECK(!shared.mapPiece({21, each.address, each.bytes, each.offset}));
  }
  CHECK(!shared.contains(kFree, 1));
  CHECK(shared.unmapUnused() == 8192);
  CHECK(shared.unmapUnused() == 0);
}

TEST_CASE_FIXTURE(Opened,
                  "only regular files are mapped, with the rights that they were opened with") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[1]);
  for (const int file : {open("/dev/zero", O_RDWR), open("/tmp", O_RDONLY), ends[0]}) {
    shared.put(22, file);
    CHECK(!shared.mapPiece({22, kFree, 4096, 0}));
  }
  char path[] = "/tmp/shared-memory-test-XXXXXX";
  const int file = mkstemp(path);
  CHECK(ftruncate(file, 5000) == 0);
  shared.put(23, open(path, O_RDONLY));
  shared.put(24, open(path, O_WRONLY));
  shared.put(25, file);
  unlink(path);
  CHECK(shared.mapPiece({23, kFree, 8192, 0}));  // the last page is not whole
  CHECK(!shared.mapPiece({24, kFree + 8192, 4096, 0}));
  CHECK(shared.mapPiece({25, kFree + 8192, 4096, 4096}));
  REQUIRE(shared.addRegistration(kFree + 100, 8000));
  shared.keep(kFree + 100);
  CHECK(shared.contains(kFree + 100, 8000));
  CHECK(!shared.containsWritable(kFree + 100, 8000));
  CHECK(shared.dropRegistration(kFree + 100) == 12288);
}

TEST_CASE_FIXTURE(Opened, "writable pages of a read-only registration are only read") {
  shared.put(30, memoryFile(0));
  CHECK(shared.mapPiece({30, kFree, 8192, 0}));
  REQUIRE(shared.addRegistration(kFree, 100, true));
  REQUIRE(shared.addRegistration(kFree + 100, 100));  // its neighbour in the page
  shared.keep(kFree);
  shared.keep(kFree + 100);
  CHECK(shared.contains(kFree, 100));
  CHECK(!shared.containsWritable(kFree, 100));
  CHECK(shared.containsWritable(kFree + 100, 100));
  CHECK(shared.dropRegistration(kFree) == 0);
  CHECK(shared.dropRegistration(kFree + 100) == 8192);
}

TEST_CASE_FIXTURE(Opened, "a registration needs pages, and keeps those that it touches") {
  shared.put(26, memoryFile(0));
  shared.put(27, memoryFile(0));
  CHECK(shared.mapPiece({26, kFree, 8192, 0}));
  CHECK(shared.mapPiece({27, kFree + 8192, 8192, 0}));
  CHECK(!shared.addRegistration(kFree - 1, 100));
  CHECK(!shared.addRegistration(kFree + 100, 16384));
  CHECK(!shared.addRegistration(kFree, 0));
  CHECK(!shared.addRegistration(kFree, ~std::uint64_t{0}));
  CHECK(!shared.addRegistration(~std::uint64_t{0} - 10, 100));
  CHECK(shared.addRegistration(kFree + 100, 9000));  // both pieces
  CHECK(!shared.contains(kFree + 100, 1));           // not before the driver has it
  shared.keep(kFree + 100);
  CHECK(shared.containsWritable(kFree + 100, 9000));
  CHECK(!shared.contains(kFree + 99, 1));
  CHECK(!shared.contains(kFree + 100, 9001));
  CHECK(!shared.addRegistration(kFree + 9000, 200));
  CHECK(shared.addRegistration(kFree + 9100, 200));  // its neighbour in the page
  CHECK(shared.unmapUnused() == 0);
  CHECK(shared.claim(kFree + 100));
  CHECK(!shared.claim(kFree + 100));
  CHECK(shared.dropRegistration(kFree + 100) == 8192);
  *reinterpret_cast<volatile char*>(kFree + 9100) = 'n';
  CHECK(shared.dropRegistration(kFree + 9100) == 8192);
  CHECK(!shared.claim(kFree + 9100));
}

/// Whether this process can place memory of its own there.
bool isVacant(std::uint64_t address) {
  void* const mapped = mmap(reinterpret_cast<void*>(address), 4096, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped != MAP_FAILED) munmap(mapped, 4096);
  return mapped != MAP_FAILED;
}

// A graph may have a node with an address of a registration that has ended.
TEST_CASE_FIXTURE(Opened, "addresses that were registered are never those of the worker's memory") {
  const auto map = [&](std::uint64_t id, std::uint64_t address, std::uint64_t bytes) {
    shared.put(id, memoryFile(0));
    return shared.mapPiece({id, address, bytes, 0});
  };
  REQUIRE(map(40, kFree + 8192, 8192));
  *reinterpret_cast<volatile char*>(kFree + 8192) = 'n';
  CHECK(shared.unmapUnused() == 8192);
  CHECK(!isVacant(kFree + 8192));
  CHECK(!isVacant(kFree + 12288));
  CHECK(isVacant(kFree + 16384));

  // Pages before, of, and behind the former piece.
  CHECK(map(41, kFree + 4096, kBytes));
  CHECK(*reinterpret_cast<volatile char*>(kFree + 8192) == 0);
  CHECK(!map(42, kFree, 8192));
  CHECK(!map(43, kFree + 4096 + kBytes - 4096, 4096));
  CHECK(map(44, kFree, 4096));
  CHECK(shared.unmapUnused() == kBytes + 4096);
  for (std::uint64_t page = kFree; page < kFree + 4096 + kBytes; page += 4096)
    CHECK(!isVacant(page));
}

// The kernel would round the mapping up, beyond what was checked.
TEST_CASE_FIXTURE(Opened, "no part of a huge page is mapped") {
  constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | (21u << 26);
  const int file = memfd_create("huge", kFlags);
  if (file < 0) return;  // a kernel without them
  CHECK(worker::pageBytes(file) == kHuge);
  CHECK(ftruncate(file, kHuge) == 0);
  CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  shared.put(50, dup(file));
  CHECK(!shared.map(50, begin() + kHuge, 4096));
  shared.put(51, file);
  CHECK(!shared.mapPiece({51, kFree, 4096, 0}));
  CHECK(isVacant(kFree));
}

TEST_CASE_FIXTURE(Opened, "only a file that cannot change is read in place") {
  shared.put(3, memoryFile(kPinned | F_SEAL_WRITE));
  CHECK(shared.takeSealed(3).content().size() == kBytes);
  shared.put(4, memoryFile(kPinned));
  CHECK(shared.takeSealed(4).content().empty());
  // A file system without seals.
  char path[] = "/tmp/shared-memory-test-XXXXXX";
  for (const std::uint64_t id : {6, 7}) {
    const int file = id == 6 ? mkstemp(path) : open(path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK(ftruncate(file, kBytes) == 0);
    shared.put(id, file);
  }
  unlink(path);
  CHECK(shared.takeSealed(6).content().empty());
  CHECK(!shared.map(7, begin(), kBytes));
  shared.close();
  CHECK(shared.takeSealed(5).content().empty());  // an id that the client never sent
}

}  // namespace
