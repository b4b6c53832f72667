// Traced calls: each exported call has a second body, which calls the first one and records time,
// arguments and result. traceCalls() puts the second bodies in place.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_abi.h"
#include "wire/wait.h"

namespace interposer::trace {

/// From now on, the program's calls are recorded. Generated (exports.cpp).
void traceCalls();

/// A finished call. `arguments` has one word each: the value, or the address of a larger one.
struct FinishedCall {
  std::uint32_t call;
  CUresult result;
  std::uint64_t begin, end;  ///< nanoseconds of CLOCK_MONOTONIC
  const std::uint64_t* arguments;
};

void record(const FinishedCall& call);

template <class T>
std::uint64_t word(const T& argument) {
  if constexpr (sizeof(T) > sizeof(std::uint64_t)) {
    return reinterpret_cast<std::uint64_t>(&argument);
  } else {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, &argument, sizeof argument);
    return bytes;
  }
}

template <std::uint32_t kCall, auto kBody>
struct Traced;

template <std::uint32_t kCall, class... Parameters, CUresult (*kBody)(Parameters...)>
struct Traced<kCall, kBody> {
  static CUresult call(Parameters... arguments) {
    const std::uint64_t begin = wire::monotonicNanoseconds();
    const CUresult result = kBody(arguments...);
    const std::uint64_t end = wire::monotonicNanoseconds();
    const std::uint64_t words[] = {word(arguments)..., 0};
    record({kCall, result, begin, end, words});
    return result;
  }
};

}  // namespace interposer::trace
