// A set of small numbers for data flow analyses.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulator::ptx {

class BitSet {
 public:
  explicit BitSet(std::size_t count) : words_((count + 63) / 64) {}
  void set(std::size_t i) { words_[i / 64] |= 1ull << (i % 64); }
  void clear(std::size_t i) { words_[i / 64] &= ~(1ull << (i % 64)); }
  bool has(std::size_t i) const { return (words_[i / 64] >> (i % 64)) & 1; }
  /// this |= (other & ~without); true when that added something.
  bool add(const BitSet& other, const BitSet* without) {
    bool changed = false;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::uint64_t more =
          (without ? other.words_[w] & ~without->words_[w] : other.words_[w]) & ~words_[w];
      words_[w] |= more;
      changed |= more != 0;
    }
    return changed;
  }
  template <class F>
  void each(F act) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t left = words_[w]; left; left &= left - 1)
        act(static_cast<std::uint32_t>(w * 64 + std::countr_zero(left)));
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace simulator::ptx
