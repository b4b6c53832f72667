#include "native/worker/options.h"

#include <charconv>
#include <string_view>

namespace worker {

namespace {

template <class Number>
bool parseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool set(Options& options, std::string_view name, const char* value) {
  if (name == "--driver") return options.driver = value, true;
  if (name == "--quota") return options.quota = value, true;
  if (name == "--quota-slot") return parseNumber(value, options.quotaSlot);
  if (name == "--memory-limit") return parseNumber(value, options.memoryLimit);
  if (name == "--arbiter") return options.arbiter = value, *value != '\0';
  if (name == "--gpu") return options.gpus.emplace_back(value), true;
  return false;
}

}  // namespace

bool parse(int count, char** arguments, Options& options, std::string& sentence) {
  for (int i = 1; i < count; i += 2) {
    if (i + 1 < count && set(options, arguments[i], arguments[i + 1])) continue;
    sentence = std::string("nvidia-virtual-worker does not take ") + arguments[i] +
               (i + 1 < count ? std::string(" ") + arguments[i + 1] : "") +
               "; it is started by gpu-proxy with --driver PATH [--quota FILE --quota-slot N] [--memory-limit BYTES] [--gpu INDEX|UUID]... "
               "[--arbiter SOCKET]";
    return false;
  }
  if (options.driver.empty()) sentence = "nvidia-virtual-worker needs --driver PATH: the CUDA driver that executes the calls";
  return sentence.empty();
}

}  // namespace worker
