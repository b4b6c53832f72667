// Watches the exit of processes other than children: pidfds (Linux 5.3), polled by one thread.
#pragma once

#include <napi.h>

namespace addon {

/// watchProcess(pid, ended) -> stop(). `ended` is called once, from the event loop, when the
/// process has exited or did not exist.
Napi::Value watchProcess(const Napi::CallbackInfo& info);

}  // namespace addon
