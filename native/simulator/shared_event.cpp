#include "native/simulator/shared_event.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

#include "wire/anonymous_file.h"

namespace simulator {

struct SharedEvent::State {
  std::atomic<std::uint64_t> recorded;
  std::atomic<std::uint64_t> finished;
  std::atomic<std::uint32_t> changes;  ///< futex
  std::atomic<std::int32_t> recorder;  ///< the process of the latest record
};

namespace {

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* patience) {
  return syscall(SYS_futex, &word, operation, value, patience, nullptr, 0);
}

bool isDead(pid_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::map(int file) {
  struct stat status {};
  void* mapped = fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(State))
                     ? mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
  if (mapped == MAP_FAILED) return close(file), nullptr;
  return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<State*>(mapped)));
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
  const int file = wire::createAnonymousFile("simulated-event", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  if (ftruncate(file, sizeof(State)) != 0) return close(file), nullptr;
  return map(file);
}

std::shared_ptr<SharedEvent> SharedEvent::open(const OfferedFile& name) {
  const int file = fetchFile(name);
  return file < 0 ? nullptr : map(file);
}

SharedEvent::~SharedEvent() {
  if (offered_) withdrawFile(*offered_);
  munmap(state_, sizeof(State));
  close(file_);
}

std::optional<OfferedFile> SharedEvent::offer() {
  const std::lock_guard lock(mutex_);
  if (offered_) return offered_;
  OfferedFile name{};
  const int copy = fcntl(file_, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && offerFile(copy, name)) offered_ = name;
  return offered_;
}

std::uint64_t SharedEvent::record() {
  state_->recorder.store(getpid());
  return state_->recorded.fetch_add(1) + 1;
}

void SharedEvent::finish(std::uint64_t number) {
  std::uint64_t before = state_->finished.load();
  while (before < number && !state_->finished.compare_exchange_weak(before, number)) {
  }
  state_->changes.fetch_add(1);
  futex(state_->changes, FUTEX_WAKE, INT_MAX, nullptr);
}

std::uint64_t SharedEvent::latest() const { return state_->recorded.load(); }

bool SharedEvent::done(std::uint64_t number) const { return state_->finished.load() >= number; }

void SharedEvent::wait(std::uint64_t number) const {
  constexpr timespec kLook{0, 100'000'000};
  for (;;) {
    const std::uint32_t changes = state_->changes.load();
    if (done(number)) return;
    if (futex(state_->changes, FUTEX_WAIT, changes, &kLook) != 0 && errno == ETIMEDOUT &&
        isDead(state_->recorder.load()))
      return;
  }
}

}  // namespace simulator
