// Credentials of the peer of a Unix stream socket, from the kernel.
#pragma once

#include <napi.h>

namespace addon {

/// peerCredentials(fd) -> {pid, uid, gid}; throws a TypeError for a bad argument and an Error when
/// fd is no connected Unix socket.
Napi::Value peerCredentials(const Napi::CallbackInfo& info);

/// peerPidfd(fd) -> a new descriptor, or undefined on a kernel that has no SO_PEERPIDFD
/// (before 6.5).
Napi::Value peerPidfd(const Napi::CallbackInfo& info);

/// peerSendsNoMore(fd) -> whether the peer has closed the connection, or shut down its side
Napi::Value peerSendsNoMore(const Napi::CallbackInfo& info);

}  // namespace addon
