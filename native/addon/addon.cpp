// The functions that nvidia-virtual.node exports. Their only user, gpu-proxy/src/host/addon.ts,
// gives them types.
#include <napi.h>

#include "native/addon/descriptors.h"
#include "native/addon/lock.h"
#include "native/addon/memory_directory.h"
#include "native/addon/memory_file.h"
#include "native/addon/peer.h"
#include "native/addon/process_watch.h"

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    return exports.Set(name, Napi::Function::New(env, function, name));
  };
  const bool set =
      add("peerCredentials", addon::peerCredentials) && add("peerPidfd", addon::peerPidfd) &&
      add("peerSendsNoMore", addon::peerSendsNoMore) && add("watchProcess", addon::watchProcess) &&
      add("sendDescriptors", addon::sendDescriptors) && add("socketPair", addon::socketPair) &&
      add("commandSocket", addon::commandSocket) && add("sendCommand", addon::sendCommand) &&
      add("memoryFile", addon::memoryFile) && add("memoryFileHandle", addon::memoryFileHandle) &&
      add("findMemoryFile", addon::findMemoryFile) && add("pipe", addon::pipe) &&
      add("lockFile", addon::lockFile) && add("memoryDirectory", addon::memoryDirectory);
  return set ? exports : Napi::Object();
}

}  // namespace

NODE_API_MODULE(addon, initialise)
