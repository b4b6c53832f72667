// Address ranges that client and worker share. In the window, shared host memory has the same
// address in both. In the ranges of device memory, the client reserves all addresses, so that no
// memory of its own lies there.
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
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin && address < end && bytes <= end - address;
  }
};

/// Candidates for the window, best first.
std::span<const AddressRange> windowCandidates();
/// Ranges where the driver in the legacy mmap layout, and the simulated driver, place device memory
/// (measured on an H200).
std::span<const AddressRange> deviceRanges();

/// Reserves a range without access. False if part of it is in use.
bool reserve(const AddressRange& range);

/// First-fit allocator over one reserved window. Thread-safe. Only the client allocates; the worker
/// maps the addresses that the client sends.
class AddressWindow {
 public:
  /// Reserves the first free candidate. False if none is free; the range is then empty.
  bool open();
  const AddressRange& range() const { return range_; }
  /// Returns the address of `bytes` (rounded up to pages), or 0 if the window is full.
  /// `alignment`: a power of two.
  std::uint64_t allocate(std::size_t bytes, std::uint64_t alignment = 1);
  void release(std::uint64_t address);

 private:
  std::mutex mutex_;
  AddressRange range_;
  std::map<std::uint64_t, std::uint64_t> used_;  ///< begin -> end
};

/// Maps `bytes` of a memory file at `address` inside a reserved window, in place of the
/// reservation. Returns false and sets errno on failure.
bool mapShared(std::uint64_t address, std::size_t bytes, int file);
/// Replaces a mapping by the reservation. Returns false and sets errno on failure.
bool unmapShared(std::uint64_t address, std::size_t bytes);

}  // namespace wire
