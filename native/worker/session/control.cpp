#include "native/worker/session/control.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <thread>
#include <vector>

#include "native/worker/session/session.h"
#include "wire/received_files.h"

namespace worker {

namespace {

constexpr std::size_t kMostBytes = 256;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLongestMilliseconds = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view kMove = "move ";

std::string answerTo(const std::string& sentence) {
  return sentence.empty() ? "done" : "error " + sentence;
}

std::string answerTo(const std::string& sentence, std::uint64_t bytes) {
  return sentence.empty() ? "done " + std::to_string(bytes) : answerTo(sentence);
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
  OwnedFile file;
  if (files.size() > 1) {
    file = OwnedFile(files[1]);
    files.erase(files.begin() + 1);
  }
  OwnedFile answer(wire::keepFirst(files));
  const std::string_view word(bytes.data(), static_cast<std::size_t>(command.bytes));
  const std::string line = (word == "park" ? answerTo(suspension_.park(answer, socket_))
                                           : execute(word, std::move(file))) +
                           '\n';
  [[maybe_unused]] const auto written = write(answer.get(), line.data(), line.size());
  return true;
}

std::string Control::execute(std::string_view command, OwnedFile file) {
  if (command == "resume") return answerTo(suspension_.resume());
  if (command == "drop") return answerTo(suspension_.drop());
  if (command.starts_with(kMove)) return answerTo(suspension_.move(command.substr(kMove.size())));
  const std::size_t space = std::min(command.find(' '), command.size() - 1);
  std::uint64_t number = 0;
  const char* const end = command.data() + command.size();
  const auto [parsed, error] = std::from_chars(command.data() + space + 1, end, number);
  const bool valid = error == std::errc() && parsed == end;
  return executeNumber(valid ? command.substr(0, space) : "", number, std::move(file));
}

std::string Control::executeNumber(std::string_view word, std::uint64_t number, OwnedFile file) {
  const Swap& swap = session_.swap;
  if (word == "leave") {
    const std::uint64_t lacking = file.get() < 0 ? swap.lacking(number) : 0;
    if (lacking > 0) return "lacks " + std::to_string(lacking);
    const std::string sentence = suspension_.leave(number, std::move(file));
    return answerTo(sentence, swap.outBytes());
  }
  if (word == "enter") {
    const std::string sentence = suspension_.enter(number);
    return answerTo(sentence, swap.outBytes());
  }
  if (word != "suspend" || number > kLongestMilliseconds)
    return answerTo("its worker is of an older build and does not know the command");
  const std::string sentence = suspension_.suspend(number * kMillisecond);
  const std::string stays = sentence.empty() ? suspension_.whyStays() : "";
  return stays.empty() ? answerTo(sentence, swap.bytes()) : "stays " + stays;
}

}  // namespace worker
