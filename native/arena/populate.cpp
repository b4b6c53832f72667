#include "native/arena/populate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace arena {

namespace {

/// A thread populates so much at a time: the threads end together, and a failure ends all soon.
constexpr std::size_t kPiece = std::size_t{2} << 20;
/// More threads gain little: they wait for the same locks.
constexpr unsigned kMostThreads = 8;

bool populatePiece(std::byte* begin, std::size_t bytes) {
  int result = 0;
  do {
    result = madvise(begin, bytes, MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0 || errno != EINVAL) return result == 0;
  populateByTouch(begin, bytes);
  return true;
}

/// The range, and what its threads have in common.
class Population {
 public:
  Population(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}

  /// Populates pieces until none is left or one failed.
  void work() {
    while (error_ == 0) {
      const std::size_t at = next_.fetch_add(kPiece);
      if (at >= bytes_) return;
      if (!populatePiece(begin_ + at, std::min(kPiece, bytes_ - at))) error_ = errno;
    }
  }

  /// errno of a piece that failed; 0: none.
  int error() const { return error_; }

 private:
  std::byte* const begin_;
  const std::size_t bytes_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<int> error_ = 0;
};

}  // namespace

void populateByTouch(std::byte* begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < bytes; at += page)
    std::atomic_ref(reinterpret_cast<unsigned char&>(begin[at])).fetch_or(0);
}

std::string populate(int file, std::size_t bytes) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return std::string("it cannot be mapped: ") + std::strerror(errno);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // it fails on a kernel without them
  Population population(static_cast<std::byte*>(mapped), bytes);
  std::vector<std::thread> threads(
      std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads));
  for (std::thread& thread : threads) thread = std::thread([&] { population.work(); });
  for (std::thread& thread : threads) thread.join();
  munmap(mapped, bytes);
  return population.error() == 0 ? std::string() : std::strerror(population.error());
}

}  // namespace arena
