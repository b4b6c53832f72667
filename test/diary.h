// A memory-mapped file in which a program records the state of its threads. test/diary.ts reads it,
// also after the program was killed.
#pragma once

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// State of one thread.
struct Diary {
  std::atomic<std::uint64_t> state;  ///< 0 not begun, 1 inside a call, 2 between calls, 3 ended
  std::atomic<std::uint64_t> calls;  ///< number of finished calls
  std::atomic<std::uint64_t> error;  ///< the error that ended the thread

  /// Makes a call and records it. Returns false if it failed.
  template <typename Call>
  bool make(Call call) {
    state = 1;
    const cudaError_t result = call();
    calls.fetch_add(1);
    state = 2;
    return result == cudaSuccess || fail(result);
  }

  bool fail(cudaError_t result) {
    error = result;
    return false;
  }
};

struct DiaryPage {
  Diary threads[2];
  std::atomic<std::uint64_t> stop;  ///< set by the reader to request an orderly end

  static DiaryPage& open(const char* path) {
    const int file = ::open(path, O_RDWR);
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) std::perror(path), std::exit(2);
    close(file);
    return *static_cast<DiaryPage*>(page);
  }
};
