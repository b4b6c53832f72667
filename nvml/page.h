// The page: what gpu-proxy publishes about the GPUs of one allocation, as a text file beside the
// socket (gpu-proxy/src/nvml/page.ts writes it). A line is a word and its values:
//   nvidia-virtual-gpus 1            format and version, the first line
//   pending                          gpu-proxy has no reading of the GPUs yet
//   system CALL STATUS HEX           what a call without a device answers
//   gpu UUID                         the lines below describe this GPU, until the next `gpu`
//   memory TOTAL USED                bytes of the quota
//   busy PERCENT                     part of the GPU's time that the allocation used
//   process PID BYTES PERCENT        a process of the allocation, with its pid in its namespace
//   answer CALL[/KEY...] STATUS HEX  what a call answers: its status, and the bytes it writes
// Unknown words are ignored, so that a later gpu-proxy may add some. The file's time of
// modification is the time of the reading.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvml/abi.h"

namespace nvml {

struct Answer {
  Return status;
  std::string bytes;
};

using Answers = std::map<std::string, Answer>;

struct Process {
  unsigned pid;
  Wide memory;    ///< bytes
  unsigned busy;  ///< percent
};

struct Gpu {
  std::string uuid;
  Wide total = 0;     ///< bytes of the quota
  Wide used = 0;      ///< bytes
  unsigned busy = 0;  ///< percent
  std::vector<Process> processes;
  Answers answers;
};

struct Page {
  bool pending = false;
  /// When gpu-proxy read the GPUs: seconds since 1970, the file's time of modification.
  long long readAt = 0;
  Answers system;
  std::vector<Gpu> gpus;
};

/// Empty if the text is not a page of a known version.
std::optional<Page> parsePage(const std::string& text);

/// The driver's version as cuDriverGetVersion numbers it; empty if the page has none.
std::optional<int> cudaVersionOf(const Page& page);

/// Path of the page: that of the socket with `.nvml` appended.
std::string pagePath();

/// Empty if the file is missing or not a page.
std::optional<Page> readPage();

/// Waits until gpu-proxy has published the GPUs. A container's allocation is made when its first
/// program connects; if there is no page, this function connects for that. Empty if there is no
/// gpu-proxy, or none answers within some seconds.
std::optional<Page> awaitPage();

}  // namespace nvml
