// Moves this process to another GPU, by the checkpoints of the driver. Its GPU memory should have
// left before: the driver copies what is left in one thread, through unpinned memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver.h"

namespace worker {

class Relocation {
 public:
  explicit Relocation(const Driver& driver) : driver_(driver) {}

  /// Whether the process is on the GPU with this UUID.
  bool isOn(std::string_view gpu) const;

  /// Moves to a GPU that the driver sees. No call may be executed and no work may run. The sentence
  /// is empty if it is done; else the process is where it was, unless it is lost().
  std::string moveTo(std::string_view gpu);

  /// Takes the process from its GPU: it has nothing of the driver's but memory then. No call may be
  /// executed before putBack(). The sentence is empty if it is done.
  std::string take();
  /// Brings it back to its GPU. If the sentence is not empty, it is lost().
  std::string putBack();

  /// It is on no GPU any more, and no call of the driver returns.
  bool lost() const { return lost_; }

 private:
  std::string unlock();
  std::string restore(std::vector<CUcheckpointGpuPair> pairs);
  std::string notTaken(CUresult status) const;
  std::string failed(const char* what, CUresult status) const;

  const Driver& driver_;
  bool lost_ = false;
};

}  // namespace worker
