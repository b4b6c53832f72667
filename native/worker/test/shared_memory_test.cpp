// Memory files from a client that may be hostile: only what is sealed, inside the window and not
// taken is mapped.
#include "native/worker/session/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/test/check.h"

namespace {

constexpr std::uint64_t kBytes = 16384;

int memoryFile(int seals) {
  const int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(ftruncate(file, kBytes) == 0 && fcntl(file, F_ADD_SEALS, seals) == 0);
  return file;
}

}  // namespace

int main() {
  wire::AddressWindow window;
  CHECK(window.open());
  worker::SharedMemory shared;
  shared.window = window.range();
  const std::uint64_t begin = window.range().begin;
  constexpr int kPinned = F_SEAL_SHRINK | F_SEAL_GROW;

  shared.put(1, memoryFile(kPinned));
  CHECK(shared.map(1, begin, kBytes));
  *reinterpret_cast<volatile char*>(begin + kBytes - 1) = 'x';
  CHECK(shared.contains(begin, kBytes) && !shared.contains(begin + 1, kBytes) &&
        !shared.contains(begin - 1, 1));
  CHECK(!shared.contains(begin, ~std::uint64_t{0}));

  const struct {
    std::uint64_t address, bytes;
    int seals;
  } wrong[] = {
      {begin, kBytes, kPinned},                                 // taken
      {begin + 4096, 4096, kPinned},                            // inside what is taken
      {begin + (1 << 20) + 1, 4096, kPinned},                   // not a page
      {begin + (1 << 20), 4095, kPinned},                       // not whole pages
      {begin + (1 << 20), kBytes + 4096, kPinned},              // more than the file has
      {begin + (1 << 20), 0, kPinned},                          // nothing
      {window.range().end - 4096, kBytes, kPinned},             // beyond the window
      {0x10000, kBytes, kPinned},                               // elsewhere
      {begin + (1 << 20), ~std::uint64_t{0} & ~4095, kPinned},  // around the end of all addresses
      {begin + (1 << 20), kBytes, F_SEAL_GROW},  // the client could cut it short later
  };
  for (const auto& [address, bytes, seals] : wrong) {
    shared.put(2, memoryFile(seals));
    CHECK(!shared.map(2, address, bytes));
  }
  CHECK(shared.unmap(begin) && !shared.unmap(begin) && !shared.contains(begin, 1));

  shared.put(3, memoryFile(kPinned | F_SEAL_WRITE));
  CHECK(shared.takeSealed(3).content().size() == kBytes);
  shared.put(4, memoryFile(kPinned));
  CHECK(shared.takeSealed(4).content().empty());
  // A file that knows no seals has none.
  char path[] = "/tmp/shared-memory-test-XXXXXX";
  for (const std::uint64_t id : {6, 7}) {
    const int file = id == 6 ? mkstemp(path) : open(path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, kBytes) == 0);
    shared.put(id, file);
  }
  unlink(path);
  CHECK(shared.takeSealed(6).content().empty() && !shared.map(7, begin, kBytes));
  shared.close();
  CHECK(shared.takeSealed(5).content().empty());  // never came
  return wire::test::checkedResult();
}
