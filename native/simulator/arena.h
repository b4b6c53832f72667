// Addresses for device memory: one range reserved per process, handed out first fit. The range stays mapped for good, so a kernel that
// still runs beside a wrong free touches stale bytes and never unmapped pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace simulator {

class Device;

inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;  ///< the granularity in which a GPU gives memory
inline constexpr std::size_t kAlignment = 512;                   ///< of every allocation

/// Free ranges of one stretch of addresses.
class FreeRanges {
 public:
  void add(std::uint64_t begin, std::uint64_t size);  ///< joined with its neighbours
  std::uint64_t take(std::uint64_t size);             ///< lowest that fits; 0 when none does

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  ///< begin -> size
};

class Arena {
 public:
  static Arena& instance();

  /// Memory charged to `device`, or to nobody when it is null (a pool accounts for its own); small pieces share 2 MiB pages.
  /// 0 when the device or the address range is full.
  std::uint64_t allocate(Device* device, std::size_t bytes);
  void release(std::uint64_t address);

 private:
  struct Piece {
    Device* device;      ///< charged; may be null
    std::uint64_t size;  ///< rounded up
    std::uint64_t page;  ///< of the shared page that holds it, 0 when the piece has pages of its own
  };
  struct SharedPage {
    Device* device;
    FreeRanges free;
    std::size_t used = 0;
  };

  Arena();
  std::uint64_t takePages(Device* device, std::uint64_t size);
  void givePages(Device* device, std::uint64_t begin, std::uint64_t size);
  std::uint64_t allocateSmall(Device* device, std::uint64_t size);

  std::mutex mutex_;
  FreeRanges pages_;
  std::unordered_map<std::uint64_t, Piece> pieces_;
  std::map<std::uint64_t, SharedPage> shared_;
};

}  // namespace simulator
