// Directories in memory that have no path.
#pragma once

#include <napi.h>

namespace addon {

/// memoryDirectory(bytes) -> a directory of a tmpfs of this size, with FD_CLOEXEC. It is mounted
/// nowhere, so only a holder of the descriptor reaches it, and it ends with the last one.
/// Linux 5.2.
Napi::Value memoryDirectory(const Napi::CallbackInfo& info);

}  // namespace addon
