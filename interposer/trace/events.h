// Lines of a trace file: events of the Chrome trace format (JSON), or text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "interposer/trace/arguments.h"

namespace interposer::trace {

enum class Format { json, text };

/// JSON for a file whose name ends in .json.
Format formatOf(std::string_view path);

struct CallEvent {
  std::string_view name;
  int process, thread;
  std::uint64_t begin, end;  ///< nanoseconds
  std::string_view result;
  std::span<const Argument> arguments;
};

struct WorkEvent {
  std::string_view name;
  std::string_view kind;  ///< kernel, copy or memset
  int process;
  unsigned device;
  std::uint64_t stream;
  std::uint64_t begin, end;
  std::uint64_t bytes;  ///< 0: unknown
};

std::string format(Format format, const CallEvent& event);
std::string format(Format format, const WorkEvent& event);

/// Names the process, and the track of a stream, for viewers. Empty in text.
std::string formatProcess(Format format, int process, std::string_view name);
std::string formatTrack(Format format, const WorkEvent& first);

/// The text with quotes, for JSON.
std::string quote(std::string_view text);

}  // namespace interposer::trace
