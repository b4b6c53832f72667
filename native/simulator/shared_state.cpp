#include "native/simulator/shared_state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "native/simulator/machine.h"
#include "wire/robust_mutex.h"

namespace simulator {
namespace {

struct Use {
  std::uint64_t bytes;
  std::uint64_t busyNanoseconds;  ///< total of ended busy times
  std::uint64_t busySince;        ///< CLOCK_MONOTONIC; 0: no kernel runs
  std::uint32_t kernels;          ///< running kernels
  std::uint32_t contexts;
};

std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

int openNamed(std::string_view name) {
  const bool isNumber =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (isNumber) return name.size() < 8 ? std::atoi(std::string(name).c_str()) : -1;
  return ::open(std::string(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/// A process holds a file lock on the byte of its place. The kernel releases it when the process
/// ends.
struct flock lockOn(unsigned place, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return lock;
}

}  // namespace

struct SharedState::Place {
  std::int32_t pid;  ///< 0: unused
  Use uses[kMaxDevices];
};

struct SharedState::File {
  static constexpr std::uint32_t kMagic = 0x53495653;  // "SVIS"
  static constexpr std::uint32_t kVersion = 1;
  static constexpr unsigned kPlaces = 4096;

  std::uint32_t magic;  ///< 0: the file is new
  std::uint32_t version;
  std::uint32_t places;  ///< number of places ever used
  alignas(64) pthread_mutex_t mutex;
  alignas(64) Place place[kPlaces];
};

SharedState* SharedState::open(bool& named) {
  const char* name = std::getenv("NVIDIA_VIRTUAL_SIMULATED_STATE");
  named = name != nullptr && *name != 0;
  if (!named) return nullptr;
  const int descriptor = openNamed(name);
  if (descriptor < 0) return nullptr;
  flock(descriptor, LOCK_EX);
  struct stat status {};
  const bool sized = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                     (status.st_size == sizeof(File) ||
                      (status.st_size == 0 && ftruncate(descriptor, sizeof(File)) == 0));
  void* mapped =
      sized ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            : MAP_FAILED;
  auto* file = mapped == MAP_FAILED ? nullptr : static_cast<File*>(mapped);
  if (file != nullptr && file->magic == 0) {
    wire::initialiseShared(file->mutex);
    file->version = File::kVersion;
    file->magic = File::kMagic;
  }
  flock(descriptor, LOCK_UN);
  if (file == nullptr || file->magic != File::kMagic || file->version != File::kVersion)
    return nullptr;
  return new SharedState(file, descriptor);
}

bool SharedState::join() {
  const wire::Locked locked(file_->mutex);
  for (unsigned i = 0; i < File::kPlaces; ++i) {
    struct flock lock = lockOn(i, F_WRLCK);
    if (fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) continue;
    own_ = &file_->place[i];
    std::memset(own_, 0, sizeof *own_);
    own_->pid = getpid();
    file_->places = std::max(file_->places, i + 1);
    return true;
  }
  return false;
}

/// A process does not conflict with its own lock, so its own place is recognised by the pid.
bool SharedState::lives(unsigned place) const {
  if (file_->place[place].pid == getpid()) return true;
  struct flock lock = lockOn(place, F_WRLCK);
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void SharedState::sweep() {
  for (unsigned i = 0; i < file_->places; ++i) {
    Place& place = file_->place[i];
    if (place.pid != 0 && !lives(i)) std::memset(&place, 0, sizeof place);
  }
}

std::uint64_t SharedState::sum(int index) const {
  std::uint64_t total = 0;
  for (unsigned i = 0; i < file_->places; ++i) total += file_->place[i].uses[index].bytes;
  return total;
}

bool SharedState::charge(int index, std::size_t bytes, std::size_t total) {
  const auto fits = [&] {
    const std::uint64_t before = sum(index);
    return before <= total && bytes <= total - before;
  };
  const wire::Locked locked(file_->mutex);
  if (!fits()) {
    sweep();
    if (!fits()) return false;
  }
  own_->uses[index].bytes += bytes;
  return true;
}

void SharedState::release(int index, std::size_t bytes) {
  const wire::Locked locked(file_->mutex);
  own_->uses[index].bytes -= bytes;
}

void SharedState::addContext(int index, int change) {
  const wire::Locked locked(file_->mutex);
  own_->uses[index].contexts += static_cast<std::uint32_t>(change);
}

GpuUse SharedState::takeAway(int index) {
  const wire::Locked locked(file_->mutex);
  Use& use = own_->uses[index];
  return {std::exchange(use.bytes, 0), std::exchange(use.contexts, 0)};
}

bool SharedState::giveBack(int index, const GpuUse& use, std::size_t total) {
  if (!charge(index, use.bytes, total)) return false;
  addContext(index, static_cast<int>(use.contexts));
  return true;
}

void SharedState::beginKernel(int index) {
  const wire::Locked locked(file_->mutex);
  Use& use = own_->uses[index];
  if (use.kernels++ == 0) use.busySince = now();
}

void SharedState::endKernel(int index) {
  const wire::Locked locked(file_->mutex);
  Use& use = own_->uses[index];
  if (--use.kernels > 0) return;
  use.busyNanoseconds += now() - use.busySince;
  use.busySince = 0;
}

std::size_t SharedState::used(int index) {
  const wire::Locked locked(file_->mutex);
  sweep();
  return sum(index);
}

std::vector<ProcessUse> SharedState::processes(int index) {
  const wire::Locked locked(file_->mutex);
  sweep();
  std::vector<ProcessUse> found;
  for (unsigned i = 0; i < file_->places; ++i) {
    const auto& [pid, uses] = file_->place[i];
    const Use& use = uses[index];
    if (pid == 0 || (use.contexts == 0 && use.bytes == 0)) continue;
    found.push_back(
        {pid, use.bytes, use.busyNanoseconds + (use.busySince == 0 ? 0 : now() - use.busySince)});
  }
  return found;
}

}  // namespace simulator
