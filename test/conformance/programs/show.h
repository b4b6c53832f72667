// What the conformance programs share: a call is printed as it is written, with the name of its result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

inline const char* resultName(cudaError_t result) { return cudaGetErrorName(result); }

inline const char* yesNo(bool value) { return value ? "yes" : "no"; }

/// FNV-1a over bytes: one number that stands for a whole buffer.
inline std::uint32_t digest(const void* data, std::size_t size) {
  std::uint32_t hash = 2166136261u;
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 16777619u;
  return hash;
}

#define SHOW(call) std::printf("%s: %s\n", #call, resultName(call))
/// What the launch right before said, and then what its kernel did.
inline void showLaunch(const char* what) {
  const char* launched = resultName(cudaGetLastError());
  const char* finished = resultName(cudaDeviceSynchronize());
  std::printf("%s: launch %s, then %s\n", what, launched, finished);
}
