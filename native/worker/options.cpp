#include "native/worker/options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace worker {

namespace {

template <auto member>
bool set(Options& options, const char*) {
  return options.*member = true;
}

template <auto member>
bool text(Options& options, const char* value) {
  return options.*member = value, *value != '\0';
}

template <class Number>
bool parseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <auto member>
bool number(Options& options, const char* value) {
  return parseNumber(value, options.*member);
}

template <auto member>
bool limit(Options& options, const char* value) {
  return parseNumber(value, options.limits.*member);
}

template <auto member>
bool mps(Options& options, const char* value) {
  return parseNumber(value, options.mps.*member);
}

bool mpsPipes(Options& options, const char* value) {
  return options.mps.pipes = value, *value != '\0';
}

bool mpsThreads(Options& options, const char* value) {
  return mps<&Mps::threads>(options, value) && options.mps.threads >= 1 &&
         options.mps.threads <= 100;
}

bool place(Options& options, const char* value) {
  return options.places.present = value, *value != '\0';
}

bool otherPlace(Options& options, const char* value) {
  return options.places.others.emplace_back(value), *value != '\0';
}

bool gpu(Options& options, const char* value) {
  return options.gpus.emplace_back(value), *value != '\0';
}

/// A user id other than root, because the worker drops its privileges.
bool user(Options& options, const char* value) {
  return parseNumber(value, options.uid.emplace()) && *options.uid != 0 &&
         *options.uid != static_cast<uid_t>(-1);
}

struct Option {
  std::string_view name;
  std::string_view value;  ///< shown in the usage; empty if the option takes no value
  bool (*take)(Options&, const char*);
};

constexpr Option kOptions[] = {
    {"--inventory", "", set<&Options::inventory>},
    {"--presence", "", set<&Options::presence>},
    {"--processes", "NVML", text<&Options::processes>},
    {"--answers", "", set<&Options::answers>},
    {"--xids", "", set<&Options::xids>},
    {"--watch", "MILLISECONDS", number<&Options::watch>},
    {"--warm", "", set<&Options::warm>},
    {"--driver", "PATH", text<&Options::driver>},
    {"--simulated-state", "FILE", text<&Options::simulatedState>},
    {"--gpu", "INDEX|UUID", gpu},
    {"--place", "UUID", place},
    {"--other-place", "UUID", otherPlace},
    {"--quota", "FILE", text<&Options::quota>},
    {"--quota-slot", "N", number<&Options::quotaSlot>},
    {"--sharing", "DIRECTORY", text<&Options::sharing>},
    {"--memory-limit", "BYTES", number<&Options::memoryLimit>},
    {"--context-charge", "BYTES", number<&Options::contextCharge>},
    {"--context-memory", "BYTES", limit<&Limits::contextMemory>},
    {"--stream-memory", "BYTES", limit<&Limits::streamMemory>},
    {"--heap-memory", "BYTES", limit<&Limits::heapMemory>},
    {"--arbiter", "SOCKET", text<&Options::arbiter>},
    {"--figures", "FILE", text<&Options::figures>},
    {"--cache", "DIRECTORY", text<&Options::cache>},
    {"--allocations", "DIRECTORY", text<&Options::allocations>},
    {"--uid", "N", user},
    {"--summary", "", set<&Options::summary>},
    {"--moves-managed", "", set<&Options::movesManaged>},
    {"--control", "", set<&Options::control>},
    {"--mps-pipes", "DIRECTORY", mpsPipes},
    {"--mps-threads", "PERCENT", mpsThreads},
    {"--mps-memory", "BYTES", mps<&Mps::memory>},
    {"--max-threads", "N", limit<&Limits::threads>},
    {"--max-handles", "N", limit<&Limits::handles>},
    {"--max-pinned", "BYTES", limit<&Limits::pinned>},
};

std::string usage() {
  std::string words;
  for (const Option& option : kOptions) {
    words.append(" [").append(option.name);
    if (!option.value.empty()) words.append(" ").append(option.value);
    words.append("]");
  }
  return words;
}

bool isName(std::string_view argument) { return argument.starts_with("--") && argument.size() > 2; }

/// Number of arguments that the option at `arguments` uses; 0 if it is not an option, or its value
/// is invalid.
int take(Options& options, int count, char** arguments) {
  const auto* option = std::ranges::find(kOptions, std::string_view(arguments[0]), &Option::name);
  if (option == std::end(kOptions)) {
    if (!isName(arguments[0])) return 0;
    options.unknown.emplace_back(arguments[0]);
    return count > 1 && !isName(arguments[1]) ? 2 : 1;
  }
  const int words = option->value.empty() ? 1 : 2;
  return words <= count && option->take(options, arguments[words - 1]) ? words : 0;
}

}  // namespace

bool parse(int count, char** arguments, Options& options, std::string& sentence) {
  for (int i = 1; i < count;) {
    const int taken = take(options, count - i, arguments + i);
    i += taken;
    if (taken > 0) continue;
    sentence = std::string("nvidia-virtual-worker does not take ") + arguments[i] +
               (i + 1 < count ? std::string(" ") + arguments[i + 1] : "") +
               "; it is started by gpu-proxy with" + usage();
    return false;
  }
  if (options.driver.empty() && options.processes.empty())
    sentence = "nvidia-virtual-worker needs --driver PATH: the CUDA driver that executes the calls";
  return sentence.empty();
}

}  // namespace worker
