// Makes a worker that suspends its session before each frame, moves its memory to the host and
// back, whole and in parts by turns, and lets it execute one frame. When all of it is out, the
// session moves to another GPU, if its driver sees one. For `--suspended` of
// test/conformance. It is linked with main.cpp in the place of control.cpp. The file "suspensions"
// beside it, if there is one, has three words: how often it suspended the session, how many bytes
// were out, and how often the session moved.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "native/worker/driver/devices.h"
#include "native/worker/session/control.h"
#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr std::uint64_t kPatience = 2'000'000, kPass = 1'000'000;
/// More bytes leave at one of so many suspensions only: each costs a second for a GiB.
constexpr std::uint64_t kOften = std::uint64_t{16} << 20;
constexpr unsigned kSeldom = 63;

using Counts = std::atomic<std::uint64_t>[3];

/// Opened before main(): the worker gives up its view of the file system.
Counts* openCounts() {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "suspensions";
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* at = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Counts*>(at);
}

Counts* const counts = openCounts();

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
    if (counts != nullptr) (*counts)[1] += session_.swap.outBytes();
  }
  void move() {
    const Driver& driver = session_.memory.below();
    CUuuid other{};
    if (driver.cuDeviceGetUuid_v2(&other, 1) != CUDA_SUCCESS) return;
    check(suspension_.move(uuidText(other)));
    if (counts != nullptr) ++(*counts)[2];
  }
  void check(const std::string& sentence) {
    if (!sentence.empty()) session_.fail("its memory did not move: " + sentence);
  }

  Session& session_;
  Suspension& suspension_;
};

[[noreturn]] void suspendForever(Session& session, Suspension& suspension) {
  Leaving leaving(session, suspension);
  for (unsigned round = 0;; ++round) {
    if (!suspension.suspend(kPatience).empty()) {
      usleep(100);
      continue;
    }
    const std::uint64_t bytes = suspension.whyStays().empty() ? session.swap.bytes() : 0;
    if (bytes > 0 && (bytes <= kOften || round % kSeldom == 0)) {
      if (round % 2 == 0)
        leaving.whole();
      else
        leaving.inParts();
    }
    if (counts != nullptr) ++(*counts)[0];
    const std::uint64_t waiting = session.figures.waiting.load();
    const std::string sentence = suspension.resume();
    if (!sentence.empty()) session.fail("its memory did not come back: " + sentence);
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
