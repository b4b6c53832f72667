// What contexts take of the device beside what is allocated in them: the heap that the malloc of kernels takes from, and the buffer of
// their printf.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver.h"
#include "native/worker/quota.h"

namespace worker {

/// Thread-safe. What counts of a context once counts until it ends: the driver gives nothing back before.
class ReserveAccount {
 public:
  /// `heap`: bytes that the heap takes when it is as large as by default.
  ReserveAccount(const Driver& driver, Quota& quota, std::uint64_t heap) : driver_(driver), quota_(quota), heap_(heap) {}

  /// cuCtxSetLimit in the current context. What a limit is beyond its default counts, whether or not it is ever used;
  /// CUDA_ERROR_OUT_OF_MEMORY when the quota has no room for it.
  CUresult setLimit(CUlimit limit, std::size_t value);

  /// Code is about to be loaded in the current context that may call malloc, for which the driver takes the heap with the first such code
  /// (seen with driver 580). False when the quota has no room for it.
  bool takeHeap();

  void ended(CUcontext context);

 private:
  struct Limit {
    std::uint64_t initial = 0;
    std::uint64_t charged = 0;
  };
  struct Context {
    std::map<CUlimit, Limit> limits;
    bool heap = false;
  };
  Context& current();

  const Driver& driver_;
  Quota& quota_;
  const std::uint64_t heap_;
  std::mutex mutex_;
  std::map<CUcontext, Context> contexts_;
};

}  // namespace worker
