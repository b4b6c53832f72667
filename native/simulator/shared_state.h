// Use of the simulated GPUs by all processes of a node: one small file that they all map, so that
// memory of one process is missing to the others. Without the file, a process has GPUs of its own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulator {

/// A process's use of one GPU.
struct ProcessUse {
  pid_t pid;  ///< as the process itself sees it
  std::uint64_t bytes;
  std::uint64_t busyNanoseconds;  ///< time during which it had a running kernel
};

/// What a process holds of a GPU.
struct GpuUse {
  std::uint64_t bytes = 0;
  std::uint32_t contexts = 0;
};

class SharedState {
 public:
  /// Opens the file that NVIDIA_VIRTUAL_SIMULATED_STATE names by path (created if missing) or by
  /// descriptor. Returns null if the variable is not set, or the file cannot be used; `named` tells
  /// which.
  static SharedState* open(bool& named);

  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  /// Takes a place for this process until it ends. Call it before the functions below. False if
  /// there are too many processes.
  bool join();

  /// Charges `bytes` of GPU `index`, which has `total` bytes. False if they do not fit.
  bool charge(int index, std::size_t bytes, std::size_t total);
  void release(int index, std::size_t bytes);
  void addContext(int index, int change);
  /// Gives up all that this process holds of the GPU, and returns what it was.
  GpuUse takeAway(int index);
  /// Takes as much of a GPU. False if the memory does not fit.
  bool giveBack(int index, const GpuUse& use, std::size_t total);
  void beginKernel(int index);
  void endKernel(int index);

  /// Bytes that living processes hold.
  std::size_t used(int index);
  /// The living processes that have a context or memory on a GPU.
  std::vector<ProcessUse> processes(int index);

 private:
  struct File;
  struct Place;
  SharedState(File* file, int descriptor) : file_(file), descriptor_(descriptor) {}

  bool lives(unsigned place) const;
  void sweep();
  std::uint64_t sum(int index) const;

  File* const file_;
  const int descriptor_;
  Place* own_ = nullptr;
};

}  // namespace simulator
