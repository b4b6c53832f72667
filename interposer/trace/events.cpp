#include "interposer/trace/events.h"

#include <cstdio>

namespace interposer::trace {

namespace {

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double microseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }
double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

/// Streams are tracks beside the threads of the process, whose numbers are below 2^22.
unsigned long long trackOf(const WorkEvent& event) {
  const std::uint64_t mixed = event.stream ^ event.stream >> 24;
  return 1ull << 30 | static_cast<std::uint64_t>(event.device) << 24 | (mixed & 0xff'ffff);
}

std::string timing(std::uint64_t begin, std::uint64_t end) {
  return print("\"ts\":%.3f,\"dur\":%.3f", microseconds(begin), microseconds(end - begin));
}

std::string metadata(std::string_view kind, int process, unsigned long long track,
                     std::string_view name) {
  return print("{\"ph\":\"M\",\"pid\":%d,\"tid\":%llu,\"name\":", process, track) + quote(kind) +
         ",\"args\":{\"name\":" + quote(name) + "}},\n";
}

std::string lineStart(std::uint64_t begin, int process) {
  return print("%.6f %d ", seconds(begin), process);
}

std::string lineEnd(std::uint64_t begin, std::uint64_t end) {
  return print(" <%.6f>\n", seconds(end - begin));
}

}  // namespace

Format formatOf(std::string_view path) {
  return path.ends_with(".json") ? Format::json : Format::text;
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte >= 0x7f)
      quoted += print("\\u%04x", byte);
    else
      quoted += c;
  }
  return quoted + '"';
}

std::string format(Format format, const CallEvent& event) {
  std::string text;
  if (format == Format::text) {
    text = lineStart(event.begin, event.process) + print("thread %d ", event.thread);
    text.append(event.name).append("(");
    for (const Argument& argument : event.arguments) {
      if (&argument != event.arguments.data()) text += ", ";
      text.append(argument.name).append("=").append(argument.value);
    }
    return text.append(") = ").append(event.result) + lineEnd(event.begin, event.end);
  }
  text = "{\"ph\":\"X\",\"cat\":\"call\",\"name\":" + quote(event.name) +
         print(",\"pid\":%d,\"tid\":%d,", event.process, event.thread) +
         timing(event.begin, event.end) + ",\"args\":{\"return\":" + quote(event.result);
  for (const Argument& argument : event.arguments)
    text += "," + quote(argument.name) + ":" + quote(argument.value);
  return text + "}},\n";
}

std::string format(Format format, const WorkEvent& event) {
  const auto stream = print("0x%llx", static_cast<unsigned long long>(event.stream));
  if (format == Format::text) {
    std::string text = lineStart(event.begin, event.process) +
                       print("GPU %u stream ", event.device) + stream + " ";
    text.append(event.name);
    if (event.bytes > 0) text += print(" %llu bytes", static_cast<unsigned long long>(event.bytes));
    return text + lineEnd(event.begin, event.end);
  }
  std::string text = "{\"ph\":\"X\",\"cat\":" + quote(event.kind) +
                     ",\"name\":" + quote(event.name) +
                     print(",\"pid\":%d,\"tid\":%llu,", event.process, trackOf(event)) +
                     timing(event.begin, event.end) + ",\"args\":{\"stream\":" + quote(stream);
  if (event.bytes > 0)
    text += print(",\"bytes\":%llu", static_cast<unsigned long long>(event.bytes));
  return text + "}},\n";
}

std::string formatProcess(Format format, int process, std::string_view name) {
  return format == Format::text ? "" : metadata("process_name", process, 0, name);
}

std::string formatTrack(Format format, const WorkEvent& first) {
  if (format == Format::text) return "";
  const auto stream = static_cast<unsigned long long>(first.stream);
  return metadata("thread_name", first.process, trackOf(first),
                  print("GPU %u stream 0x%llx", first.device, stream));
}

}  // namespace interposer::trace
