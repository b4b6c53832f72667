// How a function of the addon fails: a JavaScript error, and nothing as its value.
#pragma once

#include <napi.h>

#include <cerrno>
#include <string>

namespace addon {

inline Napi::Value refuse(const Napi::Error& error) {
  error.ThrowAsJavaScriptException();
  return error.Env().Undefined();
}

/// `what` with the system's word for errno: "sendDescriptors: EPIPE (Broken pipe)".
Napi::Value refuseErrno(Napi::Env env, const std::string& what, int error = errno);

}  // namespace addon
