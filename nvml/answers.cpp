// Calls whose answers come from the GPU's own NVML: the worker asked it, gpu-proxy passed them on.
#include "nvml/library.h"

using namespace nvml;

namespace {

/// CALL/KEY/KEY
template <class... Keys>
std::string keyed(const char* call, Keys... keys) {
  std::string name = call;
  ((name += '/' + std::to_string(keys)), ...);
  return name;
}

template <class... Results>
Return answer(Device device, const std::string& name, Results*... results) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    return writeAnswer(gpu.answers, name, {{results, sizeof *results}...});
  });
}

Return answerText(Device device, const std::string& name, char* out, unsigned length) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    const auto found = gpu.answers.find(name);
    if (out == nullptr) return kInvalidArgument;
    if (found == gpu.answers.end()) return kNotSupported;
    return found->second.status == kSuccess ? writeText(found->second.bytes, out, length)
                                            : found->second.status;
  });
}

template <class Struct>
Return answerVersioned(Device device, const char* name, Struct* result) {
  const Return version = checkVersion(result);
  return version == kSuccess ? answer(device, name, result) : version;
}

}  // namespace

#define VALUE(call, Type) \
  NVML_EXPORT Return call(Device device, Type* out) { return answer(device, #call, out); }
#define PAIR(call, First, Second)                                        \
  NVML_EXPORT Return call(Device device, First* first, Second* second) { \
    return answer(device, #call, first, second);                         \
  }
#define FOUR(call, Type)                                                       \
  NVML_EXPORT Return call(Device device, Type* a, Type* b, Type* c, Type* d) { \
    return answer(device, #call, a, b, c, d);                                  \
  }
#define TEXT(call, bytes)                                               \
  NVML_EXPORT Return call(Device device, char* text, unsigned length) { \
    return answerText(device, #call, text, length);                     \
  }
#define BUFFER(call, bytes)                                     \
  NVML_EXPORT Return call(Device device, Buffer<bytes>* text) { \
    return answer(device, #call, text);                         \
  }
#define KEYED(call, keys, Type)                                     \
  NVML_EXPORT Return call(Device device, unsigned key, Type* out) { \
    return answer(device, keyed(#call, key), out);                  \
  }
#define KEYED_TEXT(call, keys, bytes)                                                 \
  NVML_EXPORT Return call(Device device, unsigned key, char* text, unsigned length) { \
    return answerText(device, keyed(#call, key), text, length);                       \
  }
#define KEYED2(call, first, second, Type)                                     \
  NVML_EXPORT Return call(Device device, unsigned a, unsigned b, Type* out) { \
    return answer(device, keyed(#call, a, b), out);                           \
  }
#define KEYED3(call, first, second, third, Type)                                          \
  NVML_EXPORT Return call(Device device, unsigned a, unsigned b, unsigned c, Type* out) { \
    return answer(device, keyed(#call, a, b, c), out);                                    \
  }
#define VERSIONED(call, Struct)                            \
  NVML_EXPORT Return call(Device device, Struct* result) { \
    return answerVersioned(device, #call, result);         \
  }
#include "nvml/constants.def"
#include "nvml/readings.def"
