// Shared by the measuring programs: a clock, and one JSON object per line for each figure.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void report(const char* name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, value, unit);
  std::fflush(stdout);
}

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

/// The fastest of several rounds, in seconds: the least disturbed one.
template <typename F>
double best(int rounds, F round) {
  double least = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds();
    round();
    least = std::min(least, seconds() - start);
  }
  return least;
}

/// The median seconds of `rounds` calls, for work whose fastest call is rare.
template <typename Round>
double median(int rounds, Round round) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds();
    round();
    times.push_back(seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

/// A driver function by its name, to measure it without the runtime.
template <typename Function>
Function driverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) check(cudaErrorSymbolNotFound, name);
  return reinterpret_cast<Function>(function);
}
