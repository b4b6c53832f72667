// malloc and free of kernels. The first malloc reserves the whole heap. The real driver does that
// when it loads such code.
#include "native/simulator/heap.h"

#include <iterator>

namespace simulator {
namespace {

constexpr std::uint64_t kUnit = 16;  ///< alignment of malloc in kernels

}  // namespace

bool Heap::reserve() {
  if (reserved_) return true;
  const Memory memory = provide_();
  if (memory.begin == 0) return false;
  addFree(memory.begin, memory.size);
  return reserved_ = true;
}

void Heap::addFree(std::uint64_t begin, std::uint64_t size) {
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      removeFree(before);
    }
  }
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    removeFree(next);
  }
  free_.emplace(begin, size);
  bySize_.emplace(size, begin);
}

void Heap::removeFree(std::map<std::uint64_t, std::uint64_t>::iterator range) {
  bySize_.erase({range->second, range->first});
  free_.erase(range);
}

std::uint64_t Heap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > ~std::uint64_t{0} - kUnit) return 0;
  const std::uint64_t size = (bytes + kUnit - 1) / kUnit * kUnit;
  const std::lock_guard lock(mutex_);
  if (!reserve()) return 0;
  const auto fits = bySize_.lower_bound({size, 0});
  if (fits == bySize_.end()) return 0;
  const auto [length, begin] = *fits;
  removeFree(free_.find(begin));
  if (length > size) addFree(begin + size, length - size);
  allocated_.emplace(begin, size);
  return begin;
}

bool Heap::prepare() {
  const std::lock_guard lock(mutex_);
  return reserve();
}

void Heap::release(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto node = allocated_.extract(address);
  if (node) addFree(address, node.mapped());
}

void Heap::clear() {
  const std::lock_guard lock(mutex_);
  reserved_ = false;
  free_.clear();
  bySize_.clear();
  allocated_.clear();
}

}  // namespace simulator
