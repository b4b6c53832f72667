// Creates file descriptors, and sends them to another process.
#pragma once

#include <napi.h>

namespace addon {

/// sendDescriptors(fd, payload, descriptors, patience): one message with copies of the descriptors
/// (SCM_RIGHTS). Waits at most `patience` milliseconds for room, then throws EAGAIN.
Napi::Value sendDescriptors(const Napi::CallbackInfo& info);

/// commandSocket(path) -> a SOCK_DGRAM socket with FD_CLOEXEC, bound to the path.
Napi::Value commandSocket(const Napi::CallbackInfo& info);

/// sendCommand(path, payload, descriptors): one datagram with copies of the descriptors to the
/// socket at the path. Never waits. Nothing can be sent back.
Napi::Value sendCommand(const Napi::CallbackInfo& info);

/// pipe() -> [read end, write end], with FD_CLOEXEC.
Napi::Value pipe(const Napi::CallbackInfo& info);

/// socketPair() -> [fd, fd], connected SOCK_SEQPACKET sockets with FD_CLOEXEC.
Napi::Value socketPair(const Napi::CallbackInfo& info);

}  // namespace addon
