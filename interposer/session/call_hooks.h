// Work that managed memory adds to calls. A program without it pays no more than two loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "cuda_abi.h"

namespace interposer {

struct CallHooks {
  void (*before)();  ///< before a call is sent
  void (*after)();   ///< after one that waited for the GPU
  void (*codeEnded)(const std::function<bool(std::uint64_t code)>& ended);
};

inline std::atomic<const CallHooks*> callHooks{nullptr};

/// Runs before a call that submits a kernel, copy or memset. If it fails, nothing may be submitted.
/// Null while the program holds no pages of managed memory that moves.
inline std::atomic<CUresult (*)()> beforeWork{nullptr};

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
