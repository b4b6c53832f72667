#include "nvml/page.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace nvml {

namespace {

constexpr std::string_view kFirstLine = "nvidia-virtual-gpus 1";
/// The same path in every container.
constexpr const char* kContainerSocket = "/run/nvidia-virtual/gpu.sock";
/// Far beyond the page of 64 GPUs with all their processes.
constexpr std::size_t kLargest = 16 << 20;

/// Removes the first word of a line and returns it.
std::string_view takeWord(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == line.npos ? line.size() : end + 1);
  return word;
}

Wide takeNumber(std::string_view& line) {
  const std::string_view word = takeWord(line);
  Wide number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

/// Empty if a digit is wrong.
std::string bytesOf(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned char byte = 0;
    if (std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16).ptr != hex.data() + i + 2)
      return {};
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

void takeAnswer(std::string_view line, Answers& answers) {
  const std::string name(takeWord(line));
  const auto status = static_cast<Return>(takeNumber(line));
  answers[name] = {status, bytesOf(line)};
}

void takeLineOfGpu(std::string_view word, std::string_view line, Gpu& gpu) {
  if (word == "memory") {
    gpu.total = takeNumber(line);
    gpu.used = takeNumber(line);
  } else if (word == "busy") {
    gpu.busy = static_cast<unsigned>(takeNumber(line));
  } else if (word == "process") {
    Process process{};
    process.pid = static_cast<unsigned>(takeNumber(line));
    process.memory = takeNumber(line);
    process.busy = static_cast<unsigned>(takeNumber(line));
    gpu.processes.push_back(process);
  } else if (word == "answer") {
    takeAnswer(line, gpu.answers);
  }
}

void takeLine(std::string_view line, Page& page) {
  const std::string_view word = takeWord(line);
  if (word == "pending") page.pending = true;
  if (word == "system") takeAnswer(line, page.system);
  if (word == "gpu") page.gpus.push_back({.uuid = std::string(line)});
  if (!page.gpus.empty()) takeLineOfGpu(word, line, page.gpus.back());
}

}  // namespace

std::optional<Page> parsePage(const std::string& text) {
  std::string_view rest = text;
  std::optional<Page> page;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (page)
      takeLine(line, *page);
    else if (line == kFirstLine)
      page.emplace();
    else
      return {};
  }
  return page;
}

std::optional<int> cudaVersionOf(const Page& page) {
  const auto found = page.system.find("nvmlSystemGetCudaDriverVersion_v2");
  int version = 0;
  if (found == page.system.end() || found->second.status != kSuccess ||
      found->second.bytes.size() != sizeof version)
    return {};
  std::memcpy(&version, found->second.bytes.data(), sizeof version);
  if (version <= 0) return {};
  return version;
}

std::string pagePath() {
  const char* socket = secure_getenv("NVIDIA_VIRTUAL_SOCKET");
  return std::string(socket != nullptr && *socket != '\0' ? socket : kContainerSocket) + ".nvml";
}

std::optional<Page> readPage() {
  const int file = open(pagePath().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char part[16384];
  for (ssize_t bytes = 0; (bytes = read(file, part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(bytes));
    if (text.size() > kLargest) break;
  }
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  close(file);
  std::optional<Page> page = parsePage(text);
  if (page && known) page->readAt = status.st_mtim.tv_sec;
  return page;
}

}  // namespace nvml
