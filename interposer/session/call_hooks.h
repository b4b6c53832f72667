// Work that managed variables add to every call. A program without such variables pays no more
// than one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace interposer {

struct CallHooks {
  void (*before)();  ///< before a call is sent
  void (*after)();   ///< after one that waited for the GPU
  void (*codeEnded)(const std::function<bool(std::uint64_t code)>& ended);
};

inline std::atomic<const CallHooks*> callHooks{nullptr};

inline void beforeCall() {
  if (const CallHooks* hooks = callHooks.load(std::memory_order_acquire)) [[unlikely]]
    hooks->before();
}
inline void afterWait() {
  if (const CallHooks* hooks = callHooks.load(std::memory_order_acquire)) [[unlikely]]
    hooks->after();
}
inline void codeEnded(const std::function<bool(std::uint64_t code)>& ended) {
  if (const CallHooks* hooks = callHooks.load(std::memory_order_acquire)) hooks->codeEnded(ended);
}

}  // namespace interposer
