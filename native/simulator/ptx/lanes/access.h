// Reads and writes of device memory. Hardware performs a naturally aligned access of one lane, a
// vector included, as one; programs rely on it (CUB publishes the status and the value of a tile in
// one 16-byte store). So each of these is one access of the host, too.
//
// 16 bytes are one aligned SSE access, which Intel and AMD guarantee to be single-copy atomic on
// every CPU with AVX. Older CPUs give no such guarantee across sockets; the engine runs there
// without it. Larger vectors (sm_100) are several accesses, as the PTX manual has it.
#pragma once

#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {

template <unsigned bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type [[gnu::may_alias]] = u8;
};
template <>
struct WordOf<2> {
  using type [[gnu::may_alias]] = u16;
};
template <>
struct WordOf<4> {
  using type [[gnu::may_alias]] = u32;
};
template <>
struct WordOf<8> {
  using type [[gnu::may_alias]] = u64;
};
template <>
struct WordOf<16> {
  using type [[gnu::may_alias]] = long long __attribute__((vector_size(16)));
};

/// Copies `bytes` bytes of device memory, aligned to as many, to `to`.
template <unsigned bytes>
[[gnu::always_inline]] inline void readOnce(void* to, u64 address) {
  if constexpr (bytes > 16) {
    readOnce<bytes / 2>(to, address);
    readOnce<bytes / 2>(static_cast<u8*>(to) + bytes / 2, address + bytes / 2);
  } else {
    const auto word = *reinterpret_cast<const volatile typename WordOf<bytes>::type*>(address);
    __builtin_memcpy(to, &word, bytes);
  }
}

template <unsigned bytes>
[[gnu::always_inline]] inline void writeOnce(u64 address, const void* from) {
  if constexpr (bytes > 16) {
    writeOnce<bytes / 2>(address, from);
    writeOnce<bytes / 2>(address + bytes / 2, static_cast<const u8*>(from) + bytes / 2);
  } else {
    typename WordOf<bytes>::type word;
    __builtin_memcpy(&word, from, bytes);
    *reinterpret_cast<volatile typename WordOf<bytes>::type*>(address) = word;
  }
}

// Neighbouring elements of at most 8 bytes, `bytes` in all. A vector access of the host may be
// split at a cache line, but never inside of an element that is aligned to its size; memcpy
// promises no such thing.
template <unsigned bytes>
struct ChunkOf {
  typedef long long type __attribute__((vector_size(32), aligned(1), may_alias));
};
template <>
struct ChunkOf<16> {
  typedef long long type __attribute__((vector_size(16), aligned(1), may_alias));
};

template <unsigned bytes>
[[gnu::always_inline]] inline void readNeighbours(void* to, u64 address) {
  using Chunk = typename ChunkOf<bytes>::type;
  for (unsigned i = 0; i < bytes; i += sizeof(Chunk)) {
    const Chunk chunk = *reinterpret_cast<const volatile Chunk*>(address + i);
    __builtin_memcpy(static_cast<u8*>(to) + i, &chunk, sizeof chunk);
  }
}

template <unsigned bytes>
[[gnu::always_inline]] inline void writeNeighbours(u64 address, const void* from) {
  using Chunk = typename ChunkOf<bytes>::type;
  for (unsigned i = 0; i < bytes; i += sizeof(Chunk)) {
    Chunk chunk;
    __builtin_memcpy(&chunk, static_cast<const u8*>(from) + i, sizeof chunk);
    *reinterpret_cast<volatile Chunk*>(address + i) = chunk;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
