// The functions that nvidia-virtual.node exports. gpu-proxy/src/connection.ts is their only user and gives them types.
#include <napi.h>

#include "native/addon/peer.h"

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  const bool set = exports.Set("peerCredentials", Napi::Function::New(env, addon::peerCredentials));
  return set ? exports : Napi::Object();
}

}  // namespace

NODE_API_MODULE(addon, initialise)
