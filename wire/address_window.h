// Address ranges that client and worker keep alike: one window in which shared host memory lies at the same address in both, and the
// ranges where the driver places device memory, which the client reserves so that nothing of its own can lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace wire {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address, std::uint64_t bytes) const { return address >= begin && address < end && bytes <= end - address; }
};

/// Where the window may lie, best first.
std::span<const AddressRange> windowCandidates();
/// Where a driver in the legacy mmap layout, and the simulated one, place device memory (h200: measured).
std::span<const AddressRange> deviceRanges();

/// Reserves a range without access. False when something of the process lies in it.
bool reserve(const AddressRange& range);

/// First fit over one reserved window; thread-safe. Only the client allocates; the worker maps what the client names.
class AddressWindow {
 public:
  /// Reserves the first candidate that is free; an empty range when none is.
  bool open();
  const AddressRange& range() const { return range_; }
  /// An address of `bytes` (rounded up to pages), or 0 when the window is full.
  std::uint64_t allocate(std::size_t bytes);
  void release(std::uint64_t address);

 private:
  std::mutex mutex_;
  AddressRange range_;
  std::map<std::uint64_t, std::uint64_t> used_;  ///< begin -> end
};

/// Maps `bytes` of a memory file at `address` inside a reserved window, replacing the reservation. False with errno set.
bool mapShared(std::uint64_t address, std::size_t bytes, int file);
/// Puts the reservation back.
bool unmapShared(std::uint64_t address, std::size_t bytes);

}  // namespace wire
