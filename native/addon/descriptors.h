// Sends file descriptors to another process.
#pragma once

#include <napi.h>

namespace addon {

/// sendDescriptors(fd, payload, descriptors, patience): one message with copies of the descriptors
/// (SCM_RIGHTS). Waits at most `patience` milliseconds for room, then throws EAGAIN.
Napi::Value sendDescriptors(const Napi::CallbackInfo& info);

/// socketPair() -> [fd, fd], connected SOCK_SEQPACKET sockets with FD_CLOEXEC.
Napi::Value socketPair(const Napi::CallbackInfo& info);

}  // namespace addon
