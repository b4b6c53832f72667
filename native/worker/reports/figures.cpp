#include "native/worker/reports/figures.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace worker {

static_assert(Figures::Word::is_always_lock_free && offsetof(Figures, launches) == 8 &&
              offsetof(Figures, gateNanoseconds) == 88 && offsetof(Figures, roundTrips) == 128 &&
              sizeof(Figures) <= Figures::kBytes);

void Figures::sampleRoundTrip(std::uint64_t nanoseconds) {
  const int exponent = std::bit_width(nanoseconds | 1) - 1;
  count(roundTrips[std::min(exponent, 31)], kRoundTripsPerSample);
}

std::string FiguresFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  void* mapped = MAP_FAILED;
  if (file >= 0 && fstat(file, &status) == 0 &&
      status.st_size >= static_cast<off_t>(Figures::kBytes))
    mapped = mmap(nullptr, Figures::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const std::string reason =
      file < 0 ? std::strerror(errno) : "it is too short, or cannot be mapped";
  if (file >= 0) close(file);
  if (mapped == MAP_FAILED) return "the figures file " + path + " cannot be used: " + reason;
  auto* content = static_cast<Figures*>(mapped);
  if (content->magic != Figures::kMagic || content->version != Figures::kVersion) {
    munmap(mapped, Figures::kBytes);
    return "the figures file " + path + " is not of this version";
  }
  file_ = content;
  return {};
}

FiguresFile::~FiguresFile() {
  if (file_ != nullptr) munmap(file_, Figures::kBytes);
}

}  // namespace worker
