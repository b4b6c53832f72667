#include "native/arbiter/protocol.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

namespace arbiter {

namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kMostGpus = 64;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

template <class Number>
bool number(std::string_view text, Number least, Number most, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least &&
         value <= most;
}

bool name(std::string_view text, std::string& value) {
  const auto printable = [](char c) { return c > ' ' && c < '\x7f'; };
  value = text;
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), printable);
}

std::string quoted(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kLongestName)) shown += c >= ' ' && c < '\x7f' ? c : '?';
  return '"' + shown + '"';
}

bool pidOf(std::string_view text, pid_t& pid) {
  return number<pid_t>(text, 1, std::numeric_limits<pid_t>::max(), pid);
}

std::string readGpus(std::string_view text, std::vector<std::string>& gpus) {
  for (const std::string_view word : split(text, ',')) {
    std::string gpu;
    if (!name(word, gpu))
      return quoted(text) + " is not a list of GPUs: give their names, separated by commas";
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end())
      return "the GPU " + quoted(gpu) + " is named twice";
    gpus.push_back(gpu);
  }
  return gpus.size() <= kMostGpus
             ? ""
             : "an allocation can have " + std::to_string(kMostGpus) + " GPUs at most";
}

using Words = std::vector<std::string_view>;

std::string readAllocation(const Words& words, Command& command) {
  Terms& terms = command.terms;
  if (!name(words[1], command.id)) return quoted(words[1]) + " is not the id of an allocation";
  if (!number(words[2], 1, 100, terms.weight))
    return quoted(words[2]) + " is not a weight: give 1 to 100 percent";
  if (words[3] != "burst" && words[3] != "fixed")
    return quoted(words[3]) + " is not a policy: give burst or fixed";
  terms.policy = words[3] == "burst" ? Policy::burst : Policy::fixed;
  if (!number(words[4], -100, 100, terms.priority))
    return quoted(words[4]) + " is not a priority: give -100 to 100";
  return readGpus(words[5], terms.gpus);
}

std::string readLatency(const Words& words, Command& command) {
  if (!name(words[1], command.id)) return quoted(words[1]) + " is not the id of an allocation";
  command.terms.lowLatency = words[2] == "low";
  return words[2] == "low" || words[2] == "normal"
             ? ""
             : quoted(words[2]) + " is not a latency: give low or normal";
}

std::string readWorker(const Words& words, Command& command) {
  if (!pidOf(words[1], command.pid)) return quoted(words[1]) + " is not a process id";
  return name(words[2], command.id) ? "" : quoted(words[2]) + " is not the id of an allocation";
}

std::string readGone(const Words& words, Command& command) {
  return pidOf(words[1], command.pid) ? "" : quoted(words[1]) + " is not a process id";
}

std::string readRemove(const Words& words, Command& command) {
  return name(words[1], command.id) ? "" : quoted(words[1]) + " is not the id of an allocation";
}

std::string readWindow(const Words& words, Command& command) {
  if (number(words[1], kLeastWindow, kMostWindow, command.microseconds)) return "";
  return quoted(words[1]) + " is not a window: give " + std::to_string(kLeastWindow) + " to " +
         std::to_string(kMostWindow) + " microseconds";
}

std::string readOverrun(const Words& words, Command& command) {
  if (number<std::int64_t>(words[1], 0, kMostOverrun, command.seconds)) return "";
  return quoted(words[1]) + " is not a limit of an overrun: give 0 (none) to " +
         std::to_string(kMostOverrun) + " seconds";
}

std::string readGuarantee(const Words& words, Command& command) {
  if (number(words[1], 0, 100, command.percent)) return "";
  return quoted(words[1]) + " is not a guarantee: give 0 (none) to 100 percent";
}

std::string readNothing(const Words&, Command&) { return ""; }

struct Form {
  std::string_view word;
  Command::Kind kind;
  std::size_t words;
  std::string_view text;
  std::string (*read)(const Words&, Command&);
};

constexpr Form kForms[] = {
    {"begin", Command::Kind::begin, 1, "begin", readNothing},
    {"commit", Command::Kind::commit, 1, "commit", readNothing},
    {"allocation", Command::Kind::allocation, 6,
     "allocation ID WEIGHT burst|fixed PRIORITY GPU[,GPU...]", readAllocation},
    {"latency", Command::Kind::latency, 3, "latency ID low|normal", readLatency},
    {"worker", Command::Kind::worker, 3, "worker PID ID", readWorker},
    {"gone", Command::Kind::gone, 2, "gone PID", readGone},
    {"remove", Command::Kind::remove, 2, "remove ID", readRemove},
    {"window", Command::Kind::window, 2, "window MICROSECONDS", readWindow},
    {"overrun", Command::Kind::overrun, 2, "overrun SECONDS", readOverrun},
    {"guarantee", Command::Kind::guarantee, 2, "guarantee PERCENT", readGuarantee},
    {"figures", Command::Kind::figures, 1, "figures", readNothing},
};

}  // namespace

std::string parse(std::string_view line, Command& command) {
  const Words words = split(line, ' ');
  for (const Form& form : kForms) {
    if (words[0] != form.word) continue;
    if (words.size() != form.words)
      return quoted(line) + " is not of the form: " + std::string(form.text);
    command = Command{};
    command.kind = form.kind;
    return form.read(words, command);
  }
  return quoted(words[0]) +
         " is not a command; the commands are begin, commit, allocation, latency, worker, gone, "
         "remove, window, overrun, guarantee and figures";
}

}  // namespace arbiter
