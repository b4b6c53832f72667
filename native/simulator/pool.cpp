#include "native/simulator/pool.h"

#include <algorithm>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/device.h"
#include "native/simulator/handles.h"

namespace simulator {
namespace {

constexpr std::size_t kChunk = std::size_t{32} << 20;  ///< bytes by which a pool grows

std::size_t chunks(std::size_t bytes) { return (bytes + kChunk - 1) / kChunk * kChunk; }

}  // namespace

std::shared_ptr<Pool> makePool(Device& device) {
  auto pool = std::make_shared<Pool>(device, true);
  Handles<Pool>::all().add(pool);
  return pool;
}

Pool::~Pool() { device.release(reserved_); }

bool Pool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (maxBytes != 0 && used_ + bytes > maxBytes) return false;
  // If a whole chunk does not fit, the pool grows by pages.
  for (const std::size_t unit : {kChunk, kPageBytes}) {
    const std::size_t needed = (used_ + bytes + unit - 1) / unit * unit;
    const std::size_t more = needed > reserved_ ? needed - reserved_ : 0;
    if (more > 0 && !device.charge(more)) continue;
    reserved_ += more;
    used_ += bytes;
    usedHigh_ = std::max(usedHigh_, used_);
    reservedHigh_ = std::max(reservedHigh_, reserved_);
    return true;
  }
  return false;
}

std::uint64_t Pool::allocate(std::size_t bytes) {
  if (bytes > device.totalBytes || !take(bytes)) return 0;
  const auto sharing = shareable ? Sharing::possible : Sharing::none;
  const std::uint64_t address = Arena::instance().allocate(nullptr, bytes, sharing);
  if (address == 0) {
    giveBack(bytes);
    return 0;
  }
  Allocation allocation;
  allocation.begin = address;
  allocation.size = bytes;
  allocation.kind = MemoryKind::pool;
  allocation.device = &device;
  allocation.pool = shared_from_this();
  if (shareable) allocation.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Allocations::all().add(std::move(allocation));
  return address;
}

void Pool::shrinkTo(std::size_t bytes) {
  const std::size_t kept = std::max(chunks(used_), std::min<std::size_t>(reserved_, chunks(bytes)));
  if (kept >= reserved_) return;
  device.release(reserved_ - kept);
  reserved_ = kept;
}

void Pool::giveBack(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  shrinkTo(std::min<std::uint64_t>(threshold_, device.totalBytes));
}

void Pool::trim(std::size_t keep) {
  const std::lock_guard lock(mutex_);
  shrinkTo(std::min(keep, device.totalBytes));
}

CUresult Pool::get(CUmemPool_attribute attribute, void* value) {
  const std::lock_guard lock(mutex_);
  auto* number = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
      const auto found = reuse_.find(attribute);
      *static_cast<int*>(value) = found == reuse_.end() ? 1 : found->second;
      return CUDA_SUCCESS;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *number = threshold_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *number = reserved_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *number = reservedHigh_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *number = used_; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *number = usedHigh_; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Pool::set(CUmemPool_attribute attribute, const void* value) {
  const std::lock_guard lock(mutex_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      reuse_[attribute] = *static_cast<const int*>(value) != 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      threshold_ = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      // The high-water marks can only be reset.
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? usedHigh_ : reservedHigh_) =
          attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_ : reserved_;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace simulator
