// Advice and prefetches of a program for its managed memory, by page. Interposer and
// simulated driver answer the same calls from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "cuda_abi.h"

namespace wire {

struct ManagedRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;  ///< as the program asked for
};

/// Arguments of cuMemPrefetchBatchAsync.
struct PrefetchBatch {
  const CUdeviceptr* begins;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemLocation* locations;
  const std::size_t* firstOf;  ///< for each location, the first range that goes there
  std::size_t numLocations;
  unsigned long long flags;
};

/// Thread-safe. Results are those that the calls of the same purpose return.
class ManagedRanges {
 public:
  void add(std::uint64_t begin, std::uint64_t bytes);
  /// False if no range begins there.
  bool remove(std::uint64_t begin);
  /// The range around an address.
  std::optional<ManagedRange> find(std::uint64_t address) const;

  CUresult advise(std::uint64_t begin, std::uint64_t bytes, CUmem_advise advice,
                  CUmemLocation location, int devices);
  CUresult prefetch(std::uint64_t begin, std::uint64_t bytes, CUmemLocation location, int devices);
  /// Whether all of it is managed memory, whose content may be discarded.
  CUresult discard(std::uint64_t begin, std::uint64_t bytes) const;
  /// The batches change nothing if one range is wrong.
  CUresult prefetchBatch(const PrefetchBatch& batch, int devices);
  CUresult discardBatch(const CUdeviceptr* begins, const std::size_t* sizes, std::size_t count,
                        unsigned long long flags) const;
  CUresult attach(std::uint64_t begin, std::uint64_t bytes, unsigned flags, bool nullStream) const;
  CUresult query(void* data, std::size_t size, CUmem_range_attribute attribute, std::uint64_t begin,
                 std::uint64_t bytes) const;
  CUresult queryAll(void** data, const std::size_t* sizes, const CUmem_range_attribute* attributes,
                    std::size_t count, std::uint64_t begin, std::uint64_t bytes) const;

 private:
  struct Place {
    CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
    int id = CU_DEVICE_INVALID;
    bool operator==(const Place&) const = default;
  };
  struct Pages {
    std::uint64_t end = 0;
    bool readMostly = false;
    Place preferred;
    Place prefetched;
    std::uint64_t accessedBy = 0;  ///< bit 0: the host; bit n + 1: device n
  };
  struct Summary;
  using Map = std::map<std::uint64_t, Pages>;

  bool covered(std::uint64_t begin, std::uint64_t end) const;
  /// Splits pages so that an entry begins at `at`.
  void split(std::uint64_t at);
  template <class Change>
  CUresult change(std::uint64_t begin, std::uint64_t bytes, Change change);
  Summary summarise(std::uint64_t begin, std::uint64_t end) const;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< begin -> bytes
  Map pages_;                                      ///< by begin; whole pages
};

/// Location in cuMemPrefetchAsync and cuMemAdvise of CUDA 8: a device, or CU_DEVICE_CPU.
CUmemLocation managedLocation(CUdevice device);

}  // namespace wire
