#include "native/addon/lock.h"

#include <sys/file.h>

#include <cerrno>
#include <string>

#include "native/addon/failure.h"

namespace addon {

Napi::Value lockFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "lockFile needs one file descriptor, a number"));
  const int fd = info[0].As<Napi::Number>().Int32Value();
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK)
    return refuseErrno(env, "lockFile of file descriptor " + std::to_string(fd));
  return Napi::Boolean::New(env, locked);
}

}  // namespace addon
