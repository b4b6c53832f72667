// The ranges of a memory pool: which blocks are in use, and behind which work the others become
// free.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cuda_abi.h"

namespace worker {

/// Not thread-safe.
class PoolBlocks {
 public:
  struct Stream {
    std::uint64_t number = 0;     ///< the driver's, which it never gives again
    CUcontext context = nullptr;  ///< of a default stream: each context has its own
    bool operator==(const Stream&) const = default;
  };
  /// Work that may still use a free block: what a stream had before the event.
  struct Work {
    Stream stream;
    CUcontext context = nullptr;  ///< of the event
    CUevent event = nullptr;      ///< null: there is no such work
  };

  /// Adds a range, which is free. A block may lie in several ranges of one area.
  void addRange(CUdeviceptr begin, std::uint64_t bytes, std::uint64_t area);
  /// Removes a range of idleRanges().
  void removeRange(CUdeviceptr begin);
  /// Where ranges begin of which no part is in use, and no work may use any.
  std::vector<CUdeviceptr> idleRanges() const;
  /// Bytes that are free behind work.
  std::uint64_t behindWork() const { return behindWork_; }
  /// Bytes before the address that are free, and that no work may use.
  std::uint64_t idleBefore(CUdeviceptr end) const;

  /// Takes the smallest block that the stream may use now: no work may use it, or only work of the
  /// same stream. 0 if there is none.
  CUdeviceptr take(std::uint64_t bytes, const Stream& stream);
  /// A block that was taken becomes free behind the work. Without work, it is free behind the work
  /// behind which it was taken. Returns its bytes; 0 if none begins there.
  std::uint64_t give(CUdeviceptr begin, const Work& work);

  /// Forgets the work for which `ended` says yes.
  template <class Ended>
  void forget(Ended ended) {
    std::vector<CUdeviceptr> done;
    for (const auto& [begin, block] : free_)
      if (block.work.event != nullptr && ended(block.work)) done.push_back(begin);
    for (const CUdeviceptr begin : done) forgetWork(begin);
    std::erase_if(takenBehindWork_, [&](CUdeviceptr begin) {
      Work& work = used_.at(begin).work;
      return ended(work) && (drop(std::exchange(work, {})), true);
    });
  }
  /// Takes the events that are no longer needed.
  std::vector<Work> takeEvents() { return std::exchange(events_, {}); }

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint64_t area = 0;
    Work work;                ///< of a used block: behind which it was taken
    std::uint64_t order = 0;  ///< of the work: later work of a stream has a greater number
  };
  using Free = std::map<CUdeviceptr, Block>;

  const Free::value_type* idleAround(CUdeviceptr begin, std::uint64_t bytes) const;
  void insert(CUdeviceptr begin, Block block);
  bool joins(const Block& left, const Block& right) const;
  Block remove(Free::iterator block);
  void share(const Work& work);
  void drop(const Work& work);
  void forgetWork(CUdeviceptr begin);

  std::map<CUdeviceptr, std::uint64_t> ranges_;
  Free free_;
  std::set<std::pair<std::uint64_t, CUdeviceptr>> bySize_;  ///< of free_
  std::map<CUdeviceptr, Block> used_;
  std::set<CUdeviceptr> takenBehindWork_;  ///< of used_
  std::vector<Work> events_;
  std::map<CUevent, unsigned> shared_;  ///< events of several blocks: how many more than one
  std::uint64_t behindWork_ = 0, lastOrder_ = 0;
};

}  // namespace worker
