// CHECK(call): ends the program with CUDA's error message if the call fails.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t checked = (call);                                  \
    if (checked != cudaSuccess) {                                        \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(checked));                         \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)
