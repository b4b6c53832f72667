// Both ends of every generated call in one process, without rings: what remote.cpp encodes is
// decoded by dispatch.cpp at once. The doubles beside this file stand in for
// interposer/session/call.h and native/worker/session/thread.h. Used by the generated
// roundtrip_test.cpp.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "cuda_abi.h"

namespace worker {
class Thread;
}

namespace roundtrip {

inline constexpr std::size_t kNothingCut = ~std::size_t{0};

/// What the doubles saw of the call under test.
struct Record {
  std::vector<std::byte> request;
  std::uint16_t number = 0;
  std::size_t replyBytes = 0;
  std::size_t replyCut = kNothingCut;  ///< bytes of the reply that the client gets to see
  int executed = 0;
  int refused = 0;
  int ticketsPassed = 0;
  std::vector<std::uint64_t> removed;
};
Record& record();
worker::Thread& thread();

/// Makes a call, then executes its request and its reply cut at every byte, and with bytes left
/// over.
void test(const std::function<CUresult()>& call);
/// Makes a call that must be refused before anything is executed.
void testNull(const std::function<CUresult()>& call);

/// A value that no other seed has, in every byte of it.
template <class T>
T value(int seed) {
  T made{};
  for (std::size_t i = 0; i < sizeof made; ++i)
    reinterpret_cast<unsigned char*>(&made)[i] = static_cast<unsigned char>(seed * 7 + i);
  return made;
}

template <class T>
bool same(const T& one, const T& two) {
  return std::memcmp(&one, &two, sizeof one) == 0;
}

/// The worker's object of a seed, and the handle that the client has for it.
inline constexpr std::uint64_t kHandleBits = 0x5a00'0000'0000;
template <class T>
T object(int seed) {
  return (T)(std::uint64_t{0x1000} * static_cast<std::uint64_t>(seed));
}
template <class T>
T handle(int seed) {
  return (T)((std::uint64_t)object<T>(seed) ^ kHandleBits);
}

}  // namespace roundtrip
