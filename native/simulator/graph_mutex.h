// The lock of all graphs, captures and memory of graphs. They have none of their own, because a
// call may name any of them.
#pragma once

#include <mutex>

namespace simulator {

inline std::mutex& graphMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

}  // namespace simulator
