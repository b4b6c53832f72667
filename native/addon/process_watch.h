// The ends of processes that are no children of ours: pidfds (Linux 5.3), all waited for by one thread.
#pragma once

#include <napi.h>

namespace addon {

/// watchProcess(pid, ended) -> stop(). `ended` is called once, from the event loop, when the process has exited or did not exist.
Napi::Value watchProcess(const Napi::CallbackInfo& info);

}  // namespace addon
