#include "native/worker/memory/pool_blocks.h"

#include <iterator>

namespace worker {

void PoolBlocks::addRange(CUdeviceptr begin, std::uint64_t bytes, std::uint64_t area) {
  ranges_[begin] = bytes;
  insert(begin, {.bytes = bytes, .area = area});
}

/// The idle block that contains all of the bytes; null if none does.
const PoolBlocks::Free::value_type* PoolBlocks::idleAround(CUdeviceptr begin,
                                                           std::uint64_t bytes) const {
  const auto after = free_.upper_bound(begin);
  if (after == free_.begin()) return nullptr;
  const auto& found = *std::prev(after);
  const auto& [at, block] = found;
  const bool inside = begin + bytes <= at + block.bytes;
  return inside && block.work.event == nullptr ? &found : nullptr;
}

void PoolBlocks::removeRange(CUdeviceptr begin) {
  const CUdeviceptr end = begin + ranges_.at(begin);
  const CUdeviceptr at = idleAround(begin, end - begin)->first;
  const Block block = remove(free_.find(at));
  if (at < begin) insert(at, {.bytes = begin - at, .area = block.area});
  if (end < at + block.bytes) insert(end, {.bytes = at + block.bytes - end, .area = block.area});
  ranges_.erase(begin);
}

std::vector<CUdeviceptr> PoolBlocks::idleRanges() const {
  std::vector<CUdeviceptr> idle;
  for (const auto& [begin, bytes] : ranges_)
    if (idleAround(begin, bytes) != nullptr) idle.push_back(begin);
  return idle;
}

std::uint64_t PoolBlocks::idleBefore(CUdeviceptr end) const {
  const auto* found = idleAround(end - 1, 1);
  return found == nullptr ? 0 : end - found->first;
}

CUdeviceptr PoolBlocks::take(std::uint64_t bytes, const Stream& stream) {
  for (auto each = bySize_.lower_bound({bytes, 0}); each != bySize_.end(); ++each) {
    const auto found = free_.find(each->second);
    const Work& work = found->second.work;
    if (work.event != nullptr && work.stream != stream) continue;
    const CUdeviceptr begin = found->first;
    Block block = remove(found);
    Block& taken = used_[begin] = block;
    taken.bytes = bytes;
    if (block.work.event != nullptr) takenBehindWork_.insert(begin);
    if (block.bytes == bytes) return begin;
    share(block.work);
    block.bytes -= bytes;
    insert(begin + bytes, block);
    return begin;
  }
  return 0;
}

std::uint64_t PoolBlocks::give(CUdeviceptr begin, const Work& work) {
  const auto taken = used_.extract(begin);
  if (taken.empty()) return drop(work), 0;
  takenBehindWork_.erase(begin);
  Block block = taken.mapped();
  if (work.event != nullptr) {
    drop(std::exchange(block.work, work));
    block.order = ++lastOrder_;
  }
  insert(begin, block);
  return taken.mapped().bytes;
}

/// Neighbours become one block if they are free behind the same: no work, or work of one stream.
bool PoolBlocks::joins(const Block& left, const Block& right) const {
  if (left.area != right.area) return false;
  const bool leftIdle = left.work.event == nullptr, rightIdle = right.work.event == nullptr;
  return leftIdle || rightIdle ? leftIdle && rightIdle : left.work.stream == right.work.stream;
}

void PoolBlocks::insert(CUdeviceptr begin, Block block) {
  const auto join = [&](Free::iterator neighbour) {
    Block joined = remove(neighbour);
    block.bytes += joined.bytes;
    if (joined.order > block.order) {
      std::swap(joined.work, block.work);
      block.order = joined.order;
    }
    drop(joined.work);
  };
  auto right = free_.lower_bound(begin);
  if (right != free_.end() && right->first == begin + block.bytes && joins(block, right->second))
    join(right);
  right = free_.lower_bound(begin);
  if (right != free_.begin()) {
    const auto left = std::prev(right);
    if (left->first + left->second.bytes == begin && joins(left->second, block)) {
      begin = left->first;
      join(left);
    }
  }
  bySize_.emplace(block.bytes, begin);
  free_.emplace(begin, block);
  if (block.work.event != nullptr) behindWork_ += block.bytes;
}

PoolBlocks::Block PoolBlocks::remove(Free::iterator block) {
  const Block removed = block->second;
  bySize_.erase({removed.bytes, block->first});
  if (removed.work.event != nullptr) behindWork_ -= removed.bytes;
  free_.erase(block);
  return removed;
}

void PoolBlocks::share(const Work& work) {
  if (work.event != nullptr) ++shared_[work.event];
}

void PoolBlocks::drop(const Work& work) {
  if (work.event == nullptr) return;
  const auto others = shared_.find(work.event);
  if (others == shared_.end()) return events_.push_back(work);
  if (--others->second == 0) shared_.erase(others);
}

void PoolBlocks::forgetWork(CUdeviceptr begin) {
  const auto found = free_.find(begin);
  if (found == free_.end()) return;  // it has been joined to the one before
  Block block = remove(found);
  drop(std::exchange(block.work, {}));
  insert(begin, block);
}

}  // namespace worker
