// Memory pools: memory that is allocated and freed in stream order. Freed memory goes back at once; what a release threshold keeps is
// kept as a count, so that cuMemGetInfo and the pool's attributes say what a real pool's would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "cuda_abi.h"

namespace simulator {

class Device;

struct Pool : std::enable_shared_from_this<Pool> {
  Pool(Device& device, bool isDefault) : device(device), isDefault(isDefault) {}
  ~Pool();

  Device& device;
  const bool isDefault;
  std::size_t maxBytes = 0;       ///< 0: the device's memory
  std::set<const Device*> peers;  ///< devices beside its own that may reach it; changed under Allocations::changeAccess only

  bool accessibleFrom(const Device& other) const { return &other == &device || peers.contains(&other); }
  /// Memory for an allocation of `bytes`; 0 when the device is full. It outlives the context in which it is made.
  std::uint64_t allocate(std::size_t bytes);
  /// An allocation of `bytes` ended.
  void giveBack(std::size_t bytes);
  void trim(std::size_t keep);
  CUresult get(CUmemPool_attribute attribute, void* value);
  CUresult set(CUmemPool_attribute attribute, const void* value);

 private:
  bool take(std::size_t bytes);
  void shrinkTo(std::size_t bytes);  ///< with mutex_ held

  std::mutex mutex_;
  std::uint64_t used_ = 0, usedHigh_ = 0, reserved_ = 0, reservedHigh_ = 0, threshold_ = 0;
  std::map<int, int> reuse_;  ///< the three CU_MEMPOOL_ATTR_REUSE_ switches that were set
};

std::shared_ptr<Pool> makePool(Device& device);

}  // namespace simulator
