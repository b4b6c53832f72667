// The functions that cuGetProcAddress returns: a generated table (entry_points.cpp), sorted by
// name, then version.
#pragma once

#include <cstddef>

namespace interposer {

struct EntryPoint {
  const char* name;  ///< as the program asks for it, without _v2
  int version;       ///< the first CUDA version with this prototype, such as 12000
  bool perThread;    ///< the variant whose default stream is the thread's own
  bool supported;    ///< false: exported, but answers CUDA_ERROR_NOT_SUPPORTED, and so is not found
                     ///< here
  void* pointer;
};

extern const EntryPoint kEntryPoints[];
extern const std::size_t kEntryPointCount;

}  // namespace interposer
