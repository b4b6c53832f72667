// What one session may take of the node, and what its contexts cost.
#pragma once

#include <cstdint>

namespace worker {

struct Limits {
  unsigned threads = 4096;  ///< of the program, that use CUDA at the same time
  std::uint64_t handles = 4'000'000;
  std::uint64_t pinned = 0;         ///< bytes of pinned host memory over all sessions of the allocation; 0: no limit
  std::uint64_t contextMemory = 0;  ///< bytes of device memory that each further context costs
  std::uint64_t streamMemory = 0;   ///< the same of a stream
  std::uint64_t heapMemory = 0;     ///< the same of the heap that the malloc of kernels takes from, once in a context
};

}  // namespace worker
