// OOM score: decides which process the kernel kills first when memory runs out.
#pragma once

#include <sys/types.h>

#include <string>

namespace launcher {

/// Sets the OOM score of `process` (0: this one) to that of `client`, or to 0 without a client. A
/// worker would otherwise inherit gpu-proxy's, which protects it: the kernel would kill other
/// processes for a worker's memory. Returns an error message, or an empty string.
std::string takeOomScore(pid_t process, pid_t client);

}  // namespace launcher
