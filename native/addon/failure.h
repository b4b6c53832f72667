// Failures of the addon's functions: throw a JavaScript error and return undefined.
#pragma once

#include <napi.h>

#include <cerrno>
#include <string>

namespace addon {

inline Napi::Value refuse(const Napi::Error& error) {
  error.ThrowAsJavaScriptException();
  return error.Env().Undefined();
}

/// Throws `what` with the name and text of errno: "sendDescriptors: EPIPE (Broken pipe)". As in
/// Node's errors, `code` is the name.
Napi::Value refuseErrno(Napi::Env env, const std::string& what, int error = errno);

}  // namespace addon
