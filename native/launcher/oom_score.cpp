#include "native/launcher/oom_score.h"

#include <cerrno>
#include <cstring>

#include "native/launcher/files.h"

namespace launcher {

namespace {

std::string fileOf(pid_t process) {
  return "/proc/" + (process > 0 ? std::to_string(process) : "self") + "/oom_score_adj";
}

}  // namespace

std::string takeOomScore(pid_t process, pid_t client) {
  std::string score = client > 0 ? readFile(fileOf(client)) : std::string();
  if (const std::size_t end = score.find('\n'); end != std::string::npos) score.resize(end);
  if (score.empty()) score = "0";
  if (writeFile(fileOf(process), score)) return {};
  return "cannot set oom_score_adj to " + score + ": " + std::strerror(errno);
}

}  // namespace launcher
