// A double of native/worker/session/thread.h: a handle is its object with some bits flipped.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "driver.h"
#include "roundtrip.h"
#include "wire/handle_table.h"

namespace worker {

struct Handles {
  void remove(std::uint64_t handle) { roundtrip::record().removed.push_back(handle); }
};

struct Session {
  Handles handles;
};

enum class Window { always, small, marker };

class Thread {
 public:
  Driver driver;
  Session session;

  template <class T>
  CUresult find(std::uint64_t number, T* object) {
    *object = (T)(number ^ roundtrip::kHandleBits);
    return CUDA_SUCCESS;
  }
  std::uint64_t add(wire::HandleKind, void* object, std::uint64_t = 0) {
    return reinterpret_cast<std::uint64_t>(object) ^ roundtrip::kHandleBits;
  }
  bool full() const { return false; }
  template <class T>
  void ends(T) {}
  void awaitWindow(Window, CUstream, std::uint64_t, std::initializer_list<std::uint64_t>) {}
  void passTicket(const void* = nullptr) { ++roundtrip::record().ticketsPassed; }
  CUresult refuseFrame() { return ++roundtrip::record().refused, CUDA_ERROR_INVALID_VALUE; }
};

}  // namespace worker
