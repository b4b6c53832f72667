// Whom the kernel ends first when memory runs out.
#pragma once

#include <sys/types.h>

#include <string>

namespace launcher {

/// A process inherits that of whoever starts it, and gpu-proxy is among the last that the kernel would end: a worker must not be, or
/// the tenant whose memory it uses up would see others end in its place. Gives `process` (0: this one) what `client` has; without a client
/// 0, which is what a process has of which nobody said anything. Empty when it is done.
std::string takeOomScore(pid_t process, pid_t client);

}  // namespace launcher
