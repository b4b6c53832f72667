#include "native/keeper/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "test/unit/program.h"

namespace {

using keeper::SharedFiles;
using keeper::SharedMapping;

constexpr std::size_t kPage = 4096;
constexpr int kWritten = PROT_READ | PROT_WRITE;

/// A file on the disk that is removed at once.
class DiskFile {
 public:
  DiskFile() {
    std::string path = "mapped-file-XXXXXX";
    written_ = mkostemp(path.data(), O_CLOEXEC);
    REQUIRE(ftruncate(written_, kPage) == 0);
    read_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    unlink(path.c_str());
  }
  ~DiskFile() { close(written_), close(read_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  int written() const { return written_; }
  int read() const { return read_; }

 private:
  int written_ = -1, read_ = -1;
};

/// Maps a page of the file; at `place`, if that is not null.
void* map(int file, int protection, void* place = nullptr) {
  const int fixed = place == nullptr ? 0 : MAP_FIXED;
  void* const at = mmap(place, kPage, protection, MAP_SHARED | fixed, file, 0);
  REQUIRE(at != MAP_FAILED);
  return at;
}

int memoryFile() {
  const int file = memfd_create("nvidia-virtual-test", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, kPage) == 0);
  return file;
}

/// As a list of all mappings of this process has it.
SharedMapping listed(void* at) {
  const auto files = std::make_unique<SharedFiles>();
  REQUIRE(files->read("self"));
  for (std::size_t i = 0; i < files->mappings(); ++i)
    if (files->mapping(i).begin == reinterpret_cast<std::uintptr_t>(at)) return files->mapping(i);
  FAIL("the mapping is not listed");
  return {};
}

bool isSame(int one, int other) {
  struct stat first {
  }, second{};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

int rightsOf(int file) { return fcntl(file, F_GETFL) & O_ACCMODE; }

bool isAllowed() {
  if (geteuid() == 0) return true;
  unit::skip("only root may open /proc/PID/map_files");
  return false;
}

TEST_CASE("the file of a mapping comes with the rights of the mapping") {
  if (!isAllowed()) return;
  const DiskFile disk;
  const int memory = memoryFile();
  struct Case {
    int file, protection, rights;
  };
  for (const Case& each :
       {Case{disk.written(), kWritten, O_RDWR}, Case{disk.written(), PROT_READ, O_RDONLY},
        Case{disk.read(), PROT_READ, O_RDONLY}, Case{memory, kWritten, O_RDWR}}) {
    void* const at = map(each.file, each.protection);
    const int file = keeper::openMapped(getpid(), listed(at));
    CHECK(isSame(file, each.file));
    CHECK(rightsOf(file) == each.rights);
    close(file);
    munmap(at, kPage);
  }
  close(memory);
}

TEST_CASE("a file that has taken the place of the listed one is refused") {
  if (!isAllowed()) return;
  const DiskFile disk, other;
  const int memory = memoryFile();
  for (const int before : {memory, other.written()}) {
    void* const at = map(before, kWritten);
    const SharedMapping stale = listed(at);
    map(disk.read(), PROT_READ, at);
    CHECK(keeper::openMapped(getpid(), stale) == -1);
    CHECK(errno == ESTALE);
    munmap(at, kPage);
    CHECK(keeper::openMapped(getpid(), stale) == -1);
    CHECK(errno == ENOENT);
  }
  close(memory);
}

TEST_CASE("what is not a regular file is not opened") {
  if (!isAllowed()) return;
  unsigned parameters[30] = {};  // struct io_uring_params
  const int ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, parameters));
  if (ring < 0) return unit::skip("the kernel has no io_uring");
  void* const at = map(ring, kWritten);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const SharedMapping mapping{begin, begin + kPage, 0, kWritten, keeper::mappedFile(at)};
  CHECK(keeper::openMapped(getpid(), mapping) == -1);
  CHECK(errno == EINVAL);
  munmap(at, kPage);
  close(ring);
}

}  // namespace
