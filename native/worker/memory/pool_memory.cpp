#include "native/worker/memory/pool_memory.h"

#include <algorithm>
#include <iterator>

#include "native/worker/memory/device_handle.h"
#include "native/worker/session/in_context.h"

namespace worker {

namespace {

PoolMemory* installed = nullptr;

/// The GPU of the session. It sees no other.
constexpr CUdevice kDevice = 0;
constexpr std::uint64_t kUnit = 512;
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
/// Bytes by which the driver's pools grow (H200, driver 580), and ours.
constexpr std::uint64_t kStep = std::uint64_t{32} << 20;
/// Addresses that a pool reserves at a time: they cost a few KiB of the GPU's page tables.
constexpr std::uint64_t kArea = std::uint64_t{1} << 30;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 48;
/// Numbers of allocations do not meet those of the driver, nor those of cuMemAlloc.
constexpr std::uint64_t kFirstId = std::uint64_t{1} << 49;

constexpr std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// The default streams are those of the current context.
bool isDefault(CUstream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

}  // namespace

PoolMemory::Pool* PoolMemory::find(CUmemoryPool handle) const {
  if (handle == handleOf(*standard_)) return standard_.get();
  const auto found = pools_.find(handle);
  return found == pools_.end() ? nullptr : found->second.get();
}

PoolMemory::~PoolMemory() {
  end(*standard_);
  for (const auto& [handle, pool] : pools_) end(*pool);
}

bool PoolMemory::isOwn(CUmemoryPool handle) const {
  const std::lock_guard lock(mutex_);
  return find(handle) != nullptr;
}

/// Pools for other processes are the driver's.
CUresult PoolMemory::create(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return below_.cuMemPoolCreate(handle, properties);
  CUmemoryPool judged = nullptr;
  const CUresult status = below_.cuMemPoolCreate(&judged, properties);
  if (status != CUDA_SUCCESS) return status;
  below_.cuMemPoolDestroy(judged);
  auto pool = std::make_unique<Pool>();
  pool->most = properties->maxSize;
  const std::lock_guard lock(mutex_);
  *handle = handleOf(*pool);
  pools_.emplace(*handle, std::move(pool));
  return CUDA_SUCCESS;
}

/// A pool that still holds memory is destroyed later (PoolAccount::destroy).
CUresult PoolMemory::destroy(CUmemoryPool handle) {
  const std::lock_guard lock(mutex_);
  if (handle == handleOf(*standard_)) return CUDA_ERROR_INVALID_VALUE;
  Pool* pool = find(handle);
  if (pool == nullptr) {
    const CUresult status = below_.cuMemPoolDestroy(handle);
    if (status != CUDA_SUCCESS) return status;
  } else {
    shrink(*pool, 0);
    if (pool->reserved > 0) return CUDA_ERROR_INVALID_VALUE;
  }
  pools_.erase(handle);
  if (current_ == handle) current_ = handleOf(*standard_);
  return CUDA_SUCCESS;
}

CUresult PoolMemory::standard(CUmemoryPool* handle, CUdevice device) const {
  const CUresult status = below_.cuDeviceGetDefaultMemPool(handle, device);
  if (status == CUDA_SUCCESS) *handle = handleOf(*standard_);
  return status;
}

CUresult PoolMemory::current(CUmemoryPool* handle, CUdevice device) const {
  const CUresult status = below_.cuDeviceGetMemPool(handle, device);
  const std::lock_guard lock(mutex_);
  if (status == CUDA_SUCCESS) *handle = current_;
  return status;
}

CUresult PoolMemory::choose(CUdevice device, CUmemoryPool handle) {
  const std::lock_guard lock(mutex_);
  CUmemoryPool judged = handle;
  if (find(handle) != nullptr) {
    const CUresult status = below_.cuDeviceGetDefaultMemPool(&judged, device);
    if (status != CUDA_SUCCESS) return status;
  }
  const CUresult status = below_.cuDeviceSetMemPool(device, judged);
  if (status == CUDA_SUCCESS) current_ = handle;
  return status;
}

CUresult PoolMemory::get(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const std::lock_guard lock(mutex_);
  Pool* pool = find(handle);
  if (pool == nullptr) return below_.cuMemPoolGetAttribute(handle, attribute, value);
  const auto put = [&](std::uint64_t number) {
    return *static_cast<cuuint64_t*>(value) = number, CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
      const auto found = pool->reuse.find(attribute);
      *static_cast<int*>(value) = found == pool->reuse.end() ? 1 : found->second;
      return CUDA_SUCCESS;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return put(pool->threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return put(pool->reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return put(pool->reservedHigh);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      if (pool->blocks.behindWork() > 0) forgetEnded(*pool);
      return put(pool->used + pool->blocks.behindWork());
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return put(pool->usedHigh);
    default: {  // of newer drivers
      CUmemoryPool like = nullptr;
      const CUresult status = below_.cuDeviceGetDefaultMemPool(&like, kDevice);
      return status == CUDA_SUCCESS ? below_.cuMemPoolGetAttribute(like, attribute, value) : status;
    }
  }
}

CUresult PoolMemory::set(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const std::lock_guard lock(mutex_);
  Pool* pool = find(handle);
  if (pool == nullptr) return below_.cuMemPoolSetAttribute(handle, attribute, value);
  const cuuint64_t number = *static_cast<const cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute] = *static_cast<const int*>(value) != 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return pool->threshold = number, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (number != 0) return CUDA_ERROR_INVALID_VALUE;
      return pool->reservedHigh = pool->reserved, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number != 0) return CUDA_ERROR_INVALID_VALUE;
      return pool->usedHigh = pool->used, CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult PoolMemory::setAccess(CUmemoryPool handle, const CUmemAccessDesc* access,
                               std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (find(handle) == nullptr) return below_.cuMemPoolSetAccess(handle, access, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (access[i].location.id != kDevice) return CUDA_ERROR_INVALID_DEVICE;
    if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult PoolMemory::getAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                               CUmemLocation* location) {
  const std::lock_guard lock(mutex_);
  if (find(handle) == nullptr) return below_.cuMemPoolGetAccess(flags, handle, location);
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id != kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

/// The driver judges whether a capture forbids the call.
CUresult PoolMemory::trim(CUmemoryPool handle, std::size_t keep) {
  const std::lock_guard lock(mutex_);
  Pool* pool = find(handle);
  if (pool == nullptr) return below_.cuMemPoolTrimTo(handle, keep);
  CUmemoryPool judge = nullptr;
  CUresult status = below_.cuDeviceGetDefaultMemPool(&judge, kDevice);
  if (status == CUDA_SUCCESS) status = below_.cuMemPoolTrimTo(judge, ~std::size_t{0});
  if (status == CUDA_SUCCESS) shrink(*pool, keep);
  return status;
}

CUresult PoolMemory::allocate(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(mutex_);
  return allocateLocked(address, bytes, current_, stream);
}

CUresult PoolMemory::allocateFrom(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                                  CUstream stream) {
  const std::lock_guard lock(mutex_);
  return allocateLocked(address, bytes, handle, stream);
}

/// The driver's cuMemFree of no memory fails if the context is broken.
CUresult PoolMemory::allocateLocked(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                                    CUstream stream) {
  Pool* pool = find(handle);
  if (pool == nullptr) return below_.cuMemAllocFromPoolAsync(address, bytes, handle, stream);
  if (captures_.isCaptured(stream)) return below_.cuMemAllocAsync(address, bytes, stream);
  PoolBlocks::Stream identity;
  if (const CUresult status = identify(stream, &identity); status != CUDA_SUCCESS) return status;
  if (const CUresult status = captures_.any() ? CUDA_SUCCESS : below_.cuMemFree_v2(0);
      status != CUDA_SUCCESS)
    return status;
  if (bytes == 0) return *address = 0, CUDA_SUCCESS;
  if (bytes > kLargest) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t taken = whole(bytes, kUnit);
  CUdeviceptr begin = take(*pool, taken, identity);
  if (begin == 0) {
    if (const CUresult status = grow(*pool, taken); status != CUDA_SUCCESS) return status;
    begin = pool->blocks.take(taken, identity);
  }
  pool->used += taken;
  pool->usedHigh = std::max(pool->usedHigh, pool->used);
  allocations_[begin] = {
      .begin = begin, .bytes = bytes, .id = kFirstId + lastId_++, .pool = handle};
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult PoolMemory::identify(CUstream stream, PoolBlocks::Stream* identity) const {
  unsigned long long number = 0;
  CUresult status = below_.cuStreamGetId(stream, &number);
  if (status == CUDA_SUCCESS && isDefault(stream))
    status = below_.cuCtxGetCurrent(&identity->context);
  identity->number = number;
  return status;
}

CUdeviceptr PoolMemory::take(Pool& pool, std::uint64_t bytes, const PoolBlocks::Stream& stream) {
  if (const CUdeviceptr begin = pool.blocks.take(bytes, stream); begin != 0) return begin;
  forgetEnded(pool);
  return pool.blocks.take(bytes, stream);
}

/// If a whole step does not fit on the GPU, the pool grows by pages.
CUresult PoolMemory::grow(Pool& pool, std::uint64_t bytes) {
  const RelaxedCapture relaxed(below_);
  const CUresult status = growBy(pool, bytes, kStep);
  return status == CUDA_ERROR_OUT_OF_MEMORY ? growBy(pool, bytes, kPage) : status;
}

/// Grows where an area has addresses left, by what its free end lacks; else in a new area.
CUresult PoolMemory::growBy(Pool& pool, std::uint64_t bytes, std::uint64_t unit) {
  for (auto area = pool.areas.begin(); area != pool.areas.end(); ++area) {
    const std::uint64_t has = pool.blocks.idleBefore(area->second.top);
    const std::uint64_t more = whole(bytes - std::min(has, bytes), unit);
    if (more <= area->first + area->second.bytes - area->second.top)
      return addRange(pool, area, more);
  }
  Area made{.bytes = whole(bytes, kArea)};
  CUdeviceptr begin = 0;
  CUresult status = below_.cuMemAddressReserve(&begin, made.bytes, 0, 0, 0);
  if (status != CUDA_SUCCESS) return status;
  made.top = begin;
  const auto area = pool.areas.emplace(begin, made).first;
  status = addRange(pool, area, whole(bytes, unit));
  if (status == CUDA_SUCCESS) return status;
  pool.areas.erase(area);
  below_.cuMemAddressFree(begin, made.bytes);
  return status;
}

CUresult PoolMemory::addRange(Pool& pool, std::map<CUdeviceptr, Area>::iterator area,
                              std::uint64_t bytes) {
  const bool allowed = (pool.most == 0 || pool.reserved + bytes <= whole(pool.most, kStep)) &&
                       mayGrow_(handleOf(pool), pool.reserved + bytes);
  if (!allowed) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range{.bytes = bytes, .area = area->first};
  const CUmemAllocationProp properties = memoryOf(kDevice);
  CUresult status = below_.cuMemCreate(&range.handle, bytes, &properties, 0);
  if (status != CUDA_SUCCESS) return status;
  const CUdeviceptr begin = area->second.top;
  status = mapHandle(below_, begin, bytes, range.handle, properties.location);
  if (status != CUDA_SUCCESS) return below_.cuMemRelease(range.handle), status;
  area->second.top += bytes;
  ++area->second.ranges;
  pool.ranges.emplace(begin, range);
  pool.blocks.addRange(begin, bytes, area->first);
  pool.reserved += bytes;
  pool.reservedHigh = std::max(pool.reservedHigh, pool.reserved);
  ranges_.emplace(begin, bytes);
  reserved_.fetch_add(bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

/// Addresses between two ranges stay unused until the area has no range any more.
void PoolMemory::removeRange(Pool& pool, CUdeviceptr begin) {
  const Range range = pool.ranges.at(begin);
  pool.blocks.removeRange(begin);
  below_.cuMemUnmap(begin, range.bytes);
  below_.cuMemRelease(range.handle);
  pool.ranges.erase(begin);
  ranges_.erase(begin);
  pool.reserved -= range.bytes;
  reserved_.fetch_sub(range.bytes, std::memory_order_relaxed);
  const auto area = pool.areas.find(range.area);
  if (area->second.top == begin + range.bytes) area->second.top = begin;
  if (--area->second.ranges > 0) return;
  below_.cuMemAddressFree(area->first, area->second.bytes);
  pool.areas.erase(area);
}

/// Frees what the driver has of the pool.
void PoolMemory::end(const Pool& pool) const {
  for (const auto& [begin, range] : pool.ranges) {
    if (range.handle == 0) continue;
    below_.cuMemUnmap(begin, range.bytes);
    below_.cuMemRelease(range.handle);
  }
  for (const auto& [begin, area] : pool.areas) below_.cuMemAddressFree(begin, area.bytes);
}

/// Another thread may begin a capture at any time, which the question would invalidate.
void PoolMemory::forgetEnded(Pool& pool) {
  const RelaxedCapture relaxed(below_);
  pool.blocks.forget([&](const PoolBlocks::Work& work) {
    return !ending_.contains(work.context) && below_.cuEventQuery(work.event) == CUDA_SUCCESS;
  });
  keepEvents(pool);
}

/// Events that no block needs any more are used again.
void PoolMemory::keepEvents(Pool& pool) {
  for (const PoolBlocks::Work& work : pool.blocks.takeEvents())
    events_[work.context].push_back(work.event);
}

/// Gives idle ranges back to the GPU, as long as at least `keep` bytes stay.
void PoolMemory::shrink(Pool& pool, std::uint64_t keep) {
  if (pool.reserved <= keep) return;
  const RelaxedCapture relaxed(below_);
  forgetEnded(pool);
  std::vector<CUdeviceptr> idle = pool.blocks.idleRanges();
  std::ranges::reverse(idle);  // from the top of each area
  for (const CUdeviceptr begin : idle)
    if (pool.reserved - pool.ranges.at(begin).bytes >= keep) removeRange(pool, begin);
}

void PoolMemory::release() {
  const std::lock_guard lock(mutex_);
  shrink(*standard_, standard_->threshold);
  for (const auto& [handle, pool] : pools_) shrink(*pool, pool->threshold);
}

void PoolMemory::trim() {
  const std::lock_guard lock(mutex_);
  shrink(*standard_, 0);
  for (const auto& [handle, pool] : pools_) shrink(*pool, 0);
}

/// Empty if no event can tell of the stream's work: that of a green context does not end with it.
std::optional<PoolBlocks::Work> PoolMemory::workOf(CUstream stream,
                                                   const PoolBlocks::Stream& identity) {
  PoolBlocks::Work work{.stream = identity, .context = identity.context};
  if (!isDefault(stream) && below_.cuStreamGetCtx(stream, &work.context) != CUDA_SUCCESS)
    return std::nullopt;
  if (owner_(work.context) != work.context) return std::nullopt;
  work.event = takeEvent(work.context);
  if (work.event == nullptr) return std::nullopt;
  if (below_.cuEventRecord(work.event, stream) == CUDA_SUCCESS) return work;
  events_[work.context].push_back(work.event);
  return std::nullopt;
}

/// No call uses a context that ends: one that is used is new, at the address of one that ended.
CUevent PoolMemory::takeEvent(CUcontext context) {
  ending_.erase(context);
  std::vector<CUevent>& spare = events_[context];
  CUevent event = nullptr;
  if (!spare.empty()) {
    event = spare.back();
    spare.pop_back();
    return event;
  }
  const InContext current(below_, context);
  if (current.status() == CUDA_SUCCESS) below_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  return event;
}

CUresult PoolMemory::freeBehind(CUdeviceptr address, CUstream stream) {
  {
    const std::lock_guard lock(mutex_);
    if (captures_.isCaptured(stream) || !allocations_.contains(address))
      return below_.cuMemFreeAsync(address, stream);
    PoolBlocks::Stream identity;
    if (const CUresult status = identify(stream, &identity); status != CUDA_SUCCESS) return status;
    if (const auto work = workOf(stream, identity)) return give(address, *work), CUDA_SUCCESS;
  }
  return freeByCallback(address, stream);
}

/// The driver may wait for room in the stream, so the mutex is free. If the context of the stream
/// ends first, the driver does not call back, and the block stays in use.
CUresult PoolMemory::freeByCallback(CUdeviceptr address, CUstream stream) {
  struct Freed {
    PoolMemory& pools;
    Allocation allocation;
  };
  std::unique_lock lock(mutex_);
  const auto taken = allocations_.extract(address);
  if (taken.empty()) return CUDA_ERROR_INVALID_VALUE;
  lock.unlock();
  auto* freed = new Freed{*this, taken.mapped()};
  const auto reached = [](void* argument) {
    const std::unique_ptr<Freed> given(static_cast<Freed*>(argument));
    PoolMemory& pools = given->pools;
    const std::lock_guard again(pools.mutex_);
    pools.allocations_.emplace(given->allocation.begin, given->allocation);
    pools.give(given->allocation.begin, {});
  };
  const CUresult status = below_.cuLaunchHostFunc(stream, reached, freed);
  if (status == CUDA_SUCCESS) return status;
  delete freed;
  lock.lock();
  allocations_.emplace(address, taken.mapped());
  return status;
}

bool PoolMemory::free(CUdeviceptr begin) {
  const std::lock_guard lock(mutex_);
  return give(begin, {});
}

/// The pool of an allocation is there: one that holds memory is not destroyed.
bool PoolMemory::give(CUdeviceptr begin, const PoolBlocks::Work& work) {
  const auto found = allocations_.extract(begin);
  if (found.empty()) return false;
  Pool& pool = *find(found.mapped().pool);
  pool.used -= pool.blocks.give(begin, work);
  return true;
}

void PoolMemory::contextEnding(CUcontext context) {
  const std::lock_guard lock(mutex_);
  ending_.insert(context);
  events_.erase(context);
}

void PoolMemory::contextEnded(CUcontext context) {
  const std::lock_guard lock(mutex_);
  ending_.erase(context);
  const auto forget = [&](Pool& pool) {
    pool.blocks.forget([&](const PoolBlocks::Work& work) { return work.context == context; });
    keepEvents(pool);
  };
  forget(*standard_);
  for (const auto& [handle, pool] : pools_) forget(*pool);
  events_.erase(context);
}

std::optional<PoolMemory::Allocation> PoolMemory::find(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const Allocation& memory = std::prev(after)->second;
  return address - memory.begin < memory.bytes ? std::optional(memory) : std::nullopt;
}

bool PoolMemory::touches(CUdeviceptr address, std::uint64_t bytes) const {
  if (reserved() == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.lower_bound(address);
  if (after != ranges_.end() && after->first - address < bytes) return true;
  return after != ranges_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

void PoolMemory::addPieces(std::vector<MovablePiece>& pieces) {
  const std::lock_guard lock(mutex_);
  const auto add = [&](Pool& pool) {
    for (auto& [begin, range] : pool.ranges)
      pieces.push_back({.handle = &range.handle,
                        .properties = memoryOf(kDevice),
                        .bytes = range.bytes,
                        .mappings = {{.begin = begin,
                                      .bytes = range.bytes,
                                      .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}});
  };
  add(*standard_);
  for (const auto& [handle, pool] : pools_) add(*pool);
}

void PoolMemory::install(Driver& driver) {
  installed = this;
  driver.cuMemPoolCreate = [](CUmemoryPool* handle, const CUmemPoolProps* properties) {
    return installed->create(handle, properties);
  };
  driver.cuMemPoolDestroy = [](CUmemoryPool handle) { return installed->destroy(handle); };
  driver.cuDeviceGetDefaultMemPool = [](CUmemoryPool* handle, CUdevice device) {
    return installed->standard(handle, device);
  };
  driver.cuDeviceGetMemPool = [](CUmemoryPool* handle, CUdevice device) {
    return installed->current(handle, device);
  };
  driver.cuDeviceSetMemPool = [](CUdevice device, CUmemoryPool handle) {
    return installed->choose(device, handle);
  };
  driver.cuMemPoolGetAttribute = [](CUmemoryPool handle, CUmemPool_attribute attribute,
                                    void* value) {
    return installed->get(handle, attribute, value);
  };
  driver.cuMemPoolSetAttribute = [](CUmemoryPool handle, CUmemPool_attribute attribute,
                                    void* value) {
    return installed->set(handle, attribute, value);
  };
  driver.cuMemPoolSetAccess = [](CUmemoryPool handle, const CUmemAccessDesc* access, size_t count) {
    return installed->setAccess(handle, access, count);
  };
  driver.cuMemPoolGetAccess = [](CUmemAccess_flags* flags, CUmemoryPool handle,
                                 CUmemLocation* location) {
    return installed->getAccess(flags, handle, location);
  };
  driver.cuMemPoolTrimTo = [](CUmemoryPool handle, size_t keep) {
    return installed->trim(handle, keep);
  };
  driver.cuMemAllocAsync = [](CUdeviceptr* address, size_t bytes, CUstream stream) {
    return installed->allocate(address, bytes, stream);
  };
  driver.cuMemAllocFromPoolAsync = [](CUdeviceptr* address, size_t bytes, CUmemoryPool handle,
                                      CUstream stream) {
    return installed->allocateFrom(address, bytes, handle, stream);
  };
  driver.cuMemFreeAsync = [](CUdeviceptr address, CUstream stream) {
    return installed->freeBehind(address, stream);
  };
  driver.cuMemPoolExportToShareableHandle = [](void* file, CUmemoryPool handle,
                                               CUmemAllocationHandleType type,
                                               unsigned long long flags) {
    const Driver& below = installed->below_;
    return installed->isOwn(handle)
               ? CUDA_ERROR_INVALID_VALUE
               : below.cuMemPoolExportToShareableHandle(file, handle, type, flags);
  };
  driver.cuMemPoolExportPointer = [](CUmemPoolPtrExportData* data, CUdeviceptr address) {
    return installed->find(address) ? CUDA_ERROR_INVALID_VALUE
                                    : installed->below_.cuMemPoolExportPointer(data, address);
  };
  driver.cuStreamSynchronize = [](CUstream stream) {
    const CUresult status = installed->below_.cuStreamSynchronize(stream);
    return installed->synchronized(), status;
  };
  driver.cuEventSynchronize = [](CUevent event) {
    const CUresult status = installed->below_.cuEventSynchronize(event);
    return installed->synchronized(), status;
  };
  driver.cuCtxSynchronize = [] {
    const CUresult status = installed->below_.cuCtxSynchronize();
    return installed->synchronized(), status;
  };
  driver.cuCtxSynchronize_v2 = [](CUcontext context) {
    const CUresult status = installed->below_.cuCtxSynchronize_v2(context);
    return installed->synchronized(), status;
  };
}

}  // namespace worker
