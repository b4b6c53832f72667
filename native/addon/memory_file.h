// Memory files, and handles by which later processes find them again.
#pragma once

#include <napi.h>

namespace addon {

/// memoryFile(bytes) -> a memory file of this size without pages, with FD_CLOEXEC. Its size cannot
/// change.
Napi::Value memoryFile(const Napi::CallbackInfo& info);

/// memoryFileHandle(fd) -> the kernel's handle of the file, as a string. No other file gets it.
Napi::Value memoryFileHandle(const Napi::CallbackInfo& info);

/// findMemoryFile(handle) -> an O_PATH descriptor of the file, with FD_CLOEXEC; undefined if the
/// kernel has freed it. Requires CAP_DAC_READ_SEARCH, else throws EPERM.
Napi::Value findMemoryFile(const Napi::CallbackInfo& info);

}  // namespace addon
