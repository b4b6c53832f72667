#pragma once

#include <napi.h>

namespace addon {

/// lockFile(fd): see README.md.
Napi::Value lockFile(const Napi::CallbackInfo& info);

}  // namespace addon
