// Memory pools, for allocation in stream order. Freed memory is released at once. Memory below the
// release threshold is only counted, so that cuMemGetInfo and the pool's attributes match a real
// pool.
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
  bool shareable = false;    ///< other processes can import it
  bool imported = false;     ///< of another process: nothing is allocated from it
  std::size_t maxBytes = 0;  ///< 0: the device's memory
  /// other devices that may access it; changed only under Allocations::changeAccess
  std::set<const Device*> peers;

  bool accessibleFrom(const Device& other) const {
    return &other == &device || peers.contains(&other);
  }
  /// Allocates `bytes`. Returns 0 if the device is full. The memory outlives the context that
  /// allocates it.
  std::uint64_t allocate(std::size_t bytes);
  /// Returns an allocation of `bytes` to the pool.
  void giveBack(std::size_t bytes);
  void trim(std::size_t keep);
  CUresult get(CUmemPool_attribute attribute, void* value);
  CUresult set(CUmemPool_attribute attribute, const void* value);

 private:
  bool take(std::size_t bytes);
  void shrinkTo(std::size_t bytes);  ///< requires mutex_

  std::mutex mutex_;
  std::uint64_t used_ = 0, usedHigh_ = 0, reserved_ = 0, reservedHigh_ = 0, threshold_ = 0;
  /// values of the three CU_MEMPOOL_ATTR_REUSE_ attributes that were set
  std::map<int, int> reuse_;
};

std::shared_ptr<Pool> makePool(Device& device);

}  // namespace simulator
