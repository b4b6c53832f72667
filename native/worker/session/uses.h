// Driver objects in use by calls that wait. Until a call passes its ticket, it is the only one in
// the driver, so its objects cannot be destroyed. A call that waits passes its ticket first; then
// this list protects the object that it waits for.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <mutex>

#include "cuda_abi.h"

namespace worker {

/// Thread-safe.
class Uses {
 public:
  /// Objects that one thread of the worker uses.
  class Slot {
   public:
    explicit Slot(Uses& uses);
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    /// The call at hand uses an object (null: none) and a context. Called before it passes its
    /// ticket.
    void hold(const void* object, CUcontext context);
    /// The call has returned.
    void release();

   private:
    friend Uses;
    Uses& uses_;
    std::atomic<const void*> object_{nullptr};
    std::atomic<const void*> context_{nullptr};
  };

  /// Waits until `ends` is false for every object that other threads use. The caller is alone in
  /// the driver, so no use begins meanwhile.
  template <class Ends>
  void await(const Slot& own, Ends ends) {
    while (anyOf(own, ends)) pause();
  }

 private:
  template <class Ends>
  bool anyOf(const Slot& own, Ends& ends) {
    const std::lock_guard lock(mutex_);
    for (const Slot* slot : slots_) {
      if (slot == &own) continue;
      for (const auto* word : {&slot->object_, &slot->context_}) {
        const void* object = word->load(std::memory_order_acquire);
        if (object != nullptr && ends(object)) return true;
      }
    }
    return false;
  }
  static void pause();

  std::mutex mutex_;
  std::list<Slot*> slots_;
};

}  // namespace worker
