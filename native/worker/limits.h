// What one session may take of the node, besides device memory.
#pragma once

#include <cstdint>

namespace worker {

struct Limits {
  unsigned threads = 4096;  ///< of the program, that use CUDA at the same time
  std::uint64_t handles = 4'000'000;
  std::uint64_t pinned = 0;  ///< bytes of pinned host memory over all sessions of the allocation; 0: no limit
};

}  // namespace worker
