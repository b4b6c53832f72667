// Memory files of a hostile client: only a sealed file inside the window is mapped, and only to
// free addresses.
#include "native/worker/session/shared_memory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
