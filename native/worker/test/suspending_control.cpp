// Makes a worker that suspends its session before each frame, moves its memory to the host and
// back, and lets it execute one frame. For `--suspended` of test/conformance. It is linked with
// main.cpp in the place of control.cpp. The file "suspensions" beside it, if there is one, has two
// words: how often it suspended the session, and how many bytes left.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "native/worker/session/control.h"
#include "native/worker/session/session.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr std::uint64_t kPatience = 2'000'000, kPass = 1'000'000;
/// More bytes leave at one of so many suspensions only: each costs a second for a GiB.
constexpr std::uint64_t kOften = std::uint64_t{16} << 20;
constexpr unsigned kSeldom = 64;

using Counts = std::atomic<std::uint64_t>[2];

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

[[noreturn]] void suspendForever(Session& session, Suspension& suspension) {
  std::uint64_t arena = 0;
  for (unsigned round = 0;; ++round) {
    if (!suspension.suspend(kPatience).empty()) {
      usleep(100);
      continue;
    }
    const std::uint64_t bytes = suspension.whyStays().empty() ? session.swap.bytes() : 0;
    if (bytes > 0 && (bytes <= kOften || round % kSeldom == 0)) {
      const std::string sentence = suspension.leave(bytes > arena ? makeArena(bytes) : OwnedFile());
      if (!sentence.empty()) session.fail("its memory did not leave: " + sentence);
      arena = std::max(arena, bytes);
    }
    if (counts != nullptr) {
      ++(*counts)[0];
      if (session.swap.isOut()) (*counts)[1] += bytes;
    }
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
