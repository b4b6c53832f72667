#include "native/addon/failure.h"

#include <cstring>

namespace addon {

Napi::Value refuseErrno(Napi::Env env, const std::string& what, int error) {
  const char* name = strerrorname_np(error);
  const std::string code = name != nullptr ? name : std::to_string(error);
  const Napi::Error made =
      Napi::Error::New(env, what + ": " + code + " (" + std::strerror(error) + ")");
  made.Set("code", code);
  return refuse(made);
}

}  // namespace addon
