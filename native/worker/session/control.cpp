#include "native/worker/session/control.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <thread>
#include <vector>

#include "wire/received_files.h"

namespace worker {

namespace {

constexpr std::size_t kMostBytes = 256;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::string_view kSuspend = "suspend ";

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
  const std::string sentence = execute({bytes.data(), static_cast<std::size_t>(command.bytes)});
  const std::string line = (sentence.empty() ? "done" : "error " + sentence) + '\n';
  const int answer = wire::keepFirst(files);
  [[maybe_unused]] const auto written = write(answer, line.data(), line.size());
  close(answer);
  return true;
}

/// Returns a sentence if the command was not executed.
std::string Control::execute(std::string_view command) {
  if (command == "resume") return suspension_.resume(), std::string();
  std::uint32_t milliseconds = 0;
  const bool suspends = command.starts_with(kSuspend);
  if (suspends) command.remove_prefix(kSuspend.size());
  const char* const end = command.data() + command.size();
  const auto [parsed, error] = std::from_chars(command.data(), end, milliseconds);
  if (!suspends || error != std::errc() || parsed != end)
    return "its worker is of an older build and does not know the command";
  return suspension_.suspend(milliseconds * kMillisecond);
}

}  // namespace worker
