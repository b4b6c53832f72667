// A page of a file in which a program says, also to whoever watches it die, what its threads are
// doing (test/diary.ts reads it).
#pragma once

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// What one thread says.
struct Diary {
  std::atomic<std::uint64_t> state;  ///< 0 not begun, 1 inside a call, 2 between calls, 3 ended
  std::atomic<std::uint64_t> calls;  ///< made
  std::atomic<std::uint64_t> error;  ///< that ended it
  std::atomic<std::uint64_t> when;   ///< CLOCK_MONOTONIC, nanoseconds

  /// Makes a call, and says so; false when it failed.
  template <typename Call>
  bool make(Call call) {
    state = 1;
    const cudaError_t result = call();
    calls.fetch_add(1);
    state = 2;
    return result == cudaSuccess || fail(result);
  }

  bool fail(cudaError_t result) {
    when = std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
               .count();
    error = result;
    return false;
  }
};

struct DiaryPage {
  Diary threads[2];
  std::atomic<std::uint64_t> stop;  ///< set by the reader: the program is to end in good order

  static DiaryPage& open(const char* path) {
    const int file = ::open(path, O_RDWR);
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) std::perror(path), std::exit(2);
    close(file);
    return *static_cast<DiaryPage*>(page);
  }
};
