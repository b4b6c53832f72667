// Addresses for device memory: first fit in one range reserved per process. The range stays mapped,
// so a kernel that runs beside a wrong free accesses stale bytes, not unmapped pages. Memory that
// can be shared with other processes lies in memory files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace simulator {

class Device;

inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;  ///< the page size of GPU memory
inline constexpr std::size_t kAlignment = 512;                   ///< of every allocation, in bytes

/// Free ranges within a range of addresses.
class FreeRanges {
 public:
  void add(std::uint64_t begin, std::uint64_t size);  ///< merges the range with its neighbours
  std::uint64_t take(std::uint64_t size);             ///< lowest address that fits; 0 if none does

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  ///< begin -> size
};

/// Whether other processes can map memory.
enum class Sharing : bool { none, possible };

class Arena {
 public:
  static Arena& instance();

  /// Allocates memory and charges it to `device`; null: not charged, because a pool accounts for
  /// its own. Small pieces share 2 MiB pages. Returns 0 if the device or the address range is full.
  std::uint64_t allocate(Device* device, std::size_t bytes, Sharing sharing = Sharing::none);
  void release(std::uint64_t address);

  /// Place of an allocation in a memory file.
  struct Place {
    int file;  ///< a new descriptor, which the caller owns
    std::uint64_t offset;
  };
  /// Empty for memory without Sharing::possible, or if the process has no free descriptor.
  std::optional<Place> placeOf(std::uint64_t address);

 private:
  struct Piece {
    Device* device;      ///< the charged device; may be null
    std::uint64_t size;  ///< rounded up
    std::uint64_t page;  ///< address of the shared page; 0 if the piece has pages of its own
  };
  struct SharedPage {
    Device* device;
    Sharing sharing;
    FreeRanges free;
    std::size_t used = 0;
  };

  Arena();
  std::uint64_t takePages(Device* device, std::uint64_t size, Sharing sharing);
  void givePages(Device* device, std::uint64_t begin, std::uint64_t size);
  void useFile(std::uint64_t begin, std::uint64_t size);
  std::uint64_t allocateSmall(Device* device, std::uint64_t size, Sharing sharing);

  std::mutex mutex_;
  FreeRanges pages_;
  std::unordered_map<std::uint64_t, Piece> pieces_;
  std::map<std::uint64_t, SharedPage> shared_;
  std::unordered_map<std::uint64_t, int> files_;  ///< memory files, by the address of their pages
};

}  // namespace simulator
