#include "native/addon/peer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "native/addon/failure.h"

namespace addon {

namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // missing in older headers
#endif

bool set(Napi::Object& object, const char* name, double value) { return object.Set(name, value); }

}  // namespace

Napi::Value peerCredentials(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "peerCredentials needs one file descriptor, a number"));

  const int fd = info[0].As<Napi::Number>().Int32Value();
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return refuseErrno(env, "peerCredentials of file descriptor " + std::to_string(fd));
  }
  // A socket of another family answers with uid -1. A peer in a pid namespace that is not visible
  // here has pid 0 and a true uid.
  if (peer.uid == static_cast<uid_t>(-1))
    return refuse(Napi::Error::New(env, "peerCredentials of file descriptor " + std::to_string(fd) +
                                            ": no connected Unix socket"));

  Napi::Object credentials = Napi::Object::New(env);
  if (!set(credentials, "pid", peer.pid) || !set(credentials, "uid", peer.uid) ||
      !set(credentials, "gid", peer.gid))
    return env.Undefined();
  return credentials;
}

Napi::Value peerPidfd(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "peerPidfd needs one file descriptor, a number"));
  const int fd = info[0].As<Napi::Number>().Int32Value();
  int pidfd = -1;
  socklen_t bytes = sizeof(pidfd);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) == 0)
    return Napi::Number::New(env, pidfd);
  if (errno == ENOPROTOOPT) return env.Undefined();
  return refuseErrno(env, "peerPidfd of file descriptor " + std::to_string(fd));
}

Napi::Value peerSendsNoMore(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "peerSendsNoMore needs one file descriptor, a number"));
  pollfd entry{info[0].As<Napi::Number>().Int32Value(), POLLRDHUP, 0};
  const bool ended = poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP)) != 0;
  return Napi::Boolean::New(env, ended);
}

}  // namespace addon
