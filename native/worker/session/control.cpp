#include "native/worker/session/control.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <thread>
#include <vector>

#include "native/worker/session/session.h"
#include "wire/received_files.h"

namespace worker {

namespace {

constexpr std::size_t kMostBytes = 256;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::string_view kSuspend = "suspend ";

std::string answerTo(const std::string& sentence) {
  return sentence.empty() ? "done" : "error " + sentence;
}

}  // namespace

void Control::serve() {
  while (serveNext(MSG_DONTWAIT)) continue;
  std::thread([this] {
    prctl(PR_SET_NAME, "control");
    while (serveNext(0)) continue;
  }).detach();
}

/// False if there is no command. gpu-proxy may be gone when the answer is written: the next one
/// asks again.
bool Control::serveNext(int flags) {
  std::array<char, kMostBytes> bytes;
  std::vector<int> files;
  const wire::Received command =
      wire::receiveWithFiles(socket_, bytes.data(), bytes.size(), files, flags);
  if (command.bytes < 0) return false;
  OwnedFile arena;
  if (files.size() > 1) {
    arena = OwnedFile(files[1]);
    files.erase(files.begin() + 1);
  }
  const OwnedFile answer(wire::keepFirst(files));
  const std::string line =
      execute({bytes.data(), static_cast<std::size_t>(command.bytes)}, std::move(arena)) + '\n';
  [[maybe_unused]] const auto written = write(answer.get(), line.data(), line.size());
  return true;
}

std::string Control::execute(std::string_view command, OwnedFile arena) {
  if (command == "leave") return answerTo(suspension_.leave(std::move(arena)));
  if (command == "resume") return answerTo(suspension_.resume());
  if (command == "drop") return answerTo(suspension_.drop());
  std::uint32_t milliseconds = 0;
  const bool suspends = command.starts_with(kSuspend);
  if (suspends) command.remove_prefix(kSuspend.size());
  const char* const end = command.data() + command.size();
  const auto [parsed, error] = std::from_chars(command.data(), end, milliseconds);
  if (!suspends || error != std::errc() || parsed != end)
    return answerTo("its worker is of an older build and does not know the command");
  const std::string sentence = suspension_.suspend(milliseconds * kMillisecond);
  if (!sentence.empty()) return answerTo(sentence);
  const std::string stays = suspension_.whyStays();
  return stays.empty() ? "done " + std::to_string(session_.swap.bytes()) : "stays " + stays;
}

}  // namespace worker
