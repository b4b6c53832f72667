// Makes a worker that suspends its session before each frame, moves its memory to the host and
// back, whole and in parts by turns, and lets it execute one frame. When all of it is out, the
// session moves to another GPU, if its driver sees one. For `--suspended` of test/conformance. It
// is linked with main.cpp in the place of control.cpp. The file "suspensions" beside it, if there
// is one, is a Record.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "native/worker/driver/devices.h"
#include "native/worker/session/control.h"
#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr std::uint64_t kPatience = 2'000'000, kPass = 1'000'000;
/// Until so many bytes have left, memory leaves at each suspension, then at one of kSeldom. More
/// than kMost never leaves. Each GiB costs a second.
constexpr std::uint64_t kOften = std::uint64_t{512} << 20, kMost = std::uint64_t{1} << 30;
constexpr unsigned kSeldom = 63;

/// What the sessions of a program did together.
struct Record {
  std::atomic<std::uint64_t> suspensions{0}, bytesOut{0}, moves{0};
  std::array<char, 232> failure{};  ///< why one of them ended; empty: none did
};

/// Opened before main(): the worker gives up its view of the file system.
Record* openRecord() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "suspensions";
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* at = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Record*>(at);
}

Record* const shared = openRecord();
Record own;
Record& record = shared != nullptr ? *shared : own;

/// Ends the session and returns false, if the sentence is not empty.
bool check(Session& session, const char* what, const std::string& sentence) {
  if (sentence.empty()) return true;
  const std::string failure = what + sentence;
  std::copy_n(failure.data(), std::min(failure.size(), record.failure.size()),
              record.failure.data());
  session.fail(failure);
  return false;
}

OwnedFile makeArena(std::uint64_t bytes) {
  OwnedFile file(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made = ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 &&
                    fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  return made ? std::move(file) : OwnedFile();
}

/// Lets the memory leave, whole or in two parts, of which one comes back at once.
class Leaving {
 public:
  Leaving(Session& session, Suspension& suspension) : session_(session), suspension_(suspension) {}

  void whole() {
    leave(session_.swap.bytes());
    move();
  }
  void inParts() {
    const std::uint64_t part = session_.swap.bytes() / 3;
    leave(part);
    leave(part);
    check(suspension_.enter(part));
  }

 private:
  void leave(std::uint64_t bytes) {
    const std::uint64_t lacking = session_.swap.lacking(bytes);
    check(suspension_.leave(bytes, lacking > 0 ? makeArena(lacking) : OwnedFile()));
    record.bytesOut += session_.swap.outBytes();
  }
  void move() {
    const Driver& driver = session_.memory.below();
    CUuuid other{};
    if (driver.cuDeviceGetUuid_v2(&other, 1) != CUDA_SUCCESS) return;
    if (check(suspension_.move(uuidText(other)))) ++record.moves;
  }
  bool check(const std::string& sentence) {
    return worker::check(session_, "it did not move: ", sentence);
  }

  Session& session_;
  Suspension& suspension_;
};

[[noreturn]] void suspendForever(Session& session, Suspension& suspension) {
  Leaving leaving(session, suspension);
  std::uint64_t spent = 0;
  unsigned times = 0, later = 0;
  for (;;) {
    if (!suspension.suspend(kPatience).empty()) {
      usleep(100);
      continue;
    }
    const std::uint64_t bytes = suspension.whyStays().empty() ? session.swap.bytes() : 0;
    if (bytes > 0 && bytes <= kMost && (spent < kOften || later++ % kSeldom == 0)) {
      spent += bytes;
      if (times++ % 2 == 0)
        leaving.whole();
      else
        leaving.inParts();
    }
    ++record.suspensions;
    const std::uint64_t waiting = session.figures.waiting.load();
    check(session, "its memory did not come back: ", suspension.resume());
    const std::uint64_t latest = wire::monotonicNanoseconds() + kPass;
    while (session.figures.waiting.load() >= waiting && wire::monotonicNanoseconds() < latest)
      std::this_thread::yield();
  }
}

}  // namespace

/// gpu-proxy's own commands stay unread.
void Control::serve() {
  std::thread([this] { suspendForever(session_, suspension_); }).detach();
}

}  // namespace worker
