// Stops writes to a range of addresses while its pages are exchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/memory_maps.h"

namespace interposer {

/// While it lives, threads that write to the range wait. Readers go on. A write by the kernel for
/// another thread (read(2) into the range) fails with EFAULT meanwhile. A thread that blocks
/// SIGSEGV and writes to the range ends the process. Only one may live at a time.
class WriteFreeze {
 public:
  /// `maps`: the mappings of the range, which must be writable or stay untouched.
  WriteFreeze(std::uint64_t begin, std::uint64_t end, const std::vector<wire::MemoryMap>& maps);
  /// Makes writable what has not been exchanged, and lets the writers go on.
  ~WriteFreeze();
  WriteFreeze(const WriteFreeze&) = delete;
  WriteFreeze& operator=(const WriteFreeze&) = delete;
  /// False if the system refused.
  bool ok() const { return ok_; }

 private:
  bool protect(int removed) const;

  const std::uint64_t begin_;
  const std::uint64_t end_;
  const std::vector<wire::MemoryMap>& maps_;
  bool ok_ = false;
};

}  // namespace interposer
