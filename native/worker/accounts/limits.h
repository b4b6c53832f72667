// Limits on what the sessions of an allocation take from the node, and memory costs of driver
// objects.
#pragma once

#include <cstdint>

namespace worker {

struct Limits {
  unsigned threads = 4096;  ///< over all sessions of the allocation, that use CUDA at the same time
  std::uint64_t handles = 4'000'000;  ///< over all sessions too
  std::uint64_t pinned = 0;         ///< bytes of pinned host memory over all sessions; 0: no limit
  std::uint64_t contextMemory = 0;  ///< bytes of device memory that each further context costs
  std::uint64_t streamMemory = 0;   ///< the same of a stream
  std::uint64_t heapMemory =
      0;  ///< the same of the heap that the malloc of kernels takes from, once in a context
};

}  // namespace worker
