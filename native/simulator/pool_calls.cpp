// Stream-ordered allocation and the calls about pools.
#include <atomic>
#include <map>

#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/graph_memory.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"
#include "native/simulator/pool.h"
#include "native/simulator/shared_memory.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

/// The current pool of each device, if cuDeviceSetMemPool changed it.
std::mutex currentMutex;
std::map<const Device*, std::shared_ptr<Pool>>& chosenPools() {
  static auto& pools = *new std::map<const Device*, std::shared_ptr<Pool>>;
  return pools;
}

std::shared_ptr<Pool> currentPool(const Device& device) {
  const std::lock_guard lock(currentMutex);
  const auto found = chosenPools().find(&device);
  return found == chosenPools().end() ? device.defaultPool : found->second;
}

CUresult setCurrentPool(const Device& device, CUmemoryPool handle) {
  const auto pool = Handles<Pool>::all().find(handle);
  if (pool == nullptr || &pool->device != &device || pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(currentMutex);
  chosenPools()[&device] = pool;
  return CUDA_SUCCESS;
}

/// Runs body(Pool&) on the pool that a handle names.
template <class Body>
CUresult onPool(CUmemoryPool handle, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto pool = Handles<Pool>::all().find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*pool);
  });
}

template <class Choose>
CUresult poolOf(CUmemoryPool* pool, CUdevice dev, Choose&& choose) {
  return inDriver([&]() -> CUresult {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device* device = findDevice(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pool = handleOf<CUmemoryPool>(choose(*device).get());
    return CUDA_SUCCESS;
  });
}

/// The node of an allocation in a stream that captures.
CUresult allocationNode(const Pool& pool, CUdeviceptr* dptr, std::size_t bytes, Work& work) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  parameters.alloc.poolProps.location.id = pool.device.ordinal;
  parameters.alloc.bytesize = bytes;
  const CUresult status = makeWork(parameters, work);
  if (status == CUDA_SUCCESS) *dptr = std::get<AllocateWork>(work).parameters.dptr;
  return status;
}

CUresult allocateFrom(Pool& pool, CUdeviceptr* dptr, std::size_t bytes, Stream& stream) {
  if (dptr == nullptr || pool.imported) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *dptr = 0;
    return CUDA_SUCCESS;
  }
  const auto node =
      captured(stream, [&](Work& work) { return allocationNode(pool, dptr, bytes, work); });
  if (node) return *node;
  std::uint64_t address = pool.allocate(bytes);
  if (address == 0) {
    // Wait for pending frees in stream order first.
    synchronizeAll();
    if (fault() != CUDA_SUCCESS) return fault();
    address = pool.allocate(bytes);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult freeGraphMemory(CUdeviceptr dptr, Stream& stream) {
  const auto memory = takeOutstanding(dptr);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  stream.submit([memory] { memory->setAccessible(false); });
  return CUDA_SUCCESS;
}

/// The device of a location; null for others, because host memory pools are not supported.
Device* deviceAt(const CUmemLocation* location) {
  return location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE
             ? findDevice(location->id)
             : nullptr;
}

}  // namespace

DRIVER_CALL cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return onStream(hStream, [&](Context&, Stream& stream) {
    return allocateFrom(*currentPool(stream.context.device), dptr, bytesize, stream);
  });
}

DRIVER_CALL cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                    CUstream hStream) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    const auto from = Handles<Pool>::all().find(pool);
    return from == nullptr ? CUDA_ERROR_INVALID_VALUE : allocateFrom(*from, dptr, bytesize, stream);
  });
}

DRIVER_CALL cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (dptr == 0) return CUDA_SUCCESS;
    const auto node = captured(stream, [&](Work& work) {
      CUgraphNodeParams parameters{};
      parameters.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
      parameters.free.dptr = dptr;
      return makeWork(parameters, work);
    });
    if (node) return *node;
    const auto found = Allocations::all().find(dptr);
    if (found && found->kind == MemoryKind::graph) return freeGraphMemory(dptr, stream);
    if (!found || found->begin != dptr || found->freeing ||
        (found->kind != MemoryKind::device && found->kind != MemoryKind::pool &&
         !found->importedOfPool())) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (found->importedOfPool() && !dropImport(dptr)) return CUDA_SUCCESS;
    Allocations::all().update(dptr, [](Allocation& allocation) { allocation.freeing = true; });
    stream.submit([dptr] {
      if (const auto taken = Allocations::all().take(dptr, [](const Allocation&) { return true; }))
        release(*taken);
    });
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return poolOf(pool_out, dev, [](const Device& device) { return device.defaultPool; });
}

DRIVER_CALL cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return poolOf(pool, dev, currentPool);
}

DRIVER_CALL cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return inDriver([&]() -> CUresult {
    const Device* device = findDevice(dev);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : setCurrentPool(*device, pool);
  });
}

DRIVER_CALL cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                                   CUmemAllocationType) {
  const Device* device = deviceAt(location);
  return device == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                           : cuDeviceGetDefaultMemPool(pool_out, device->ordinal);
}

DRIVER_CALL cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType) {
  const Device* device = deviceAt(location);
  return device == nullptr ? CUDA_ERROR_NOT_SUPPORTED : cuDeviceGetMemPool(pool, device->ordinal);
}

DRIVER_CALL cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType, CUmemoryPool pool) {
  const Device* device = deviceAt(location);
  return device == nullptr ? CUDA_ERROR_NOT_SUPPORTED : cuDeviceSetMemPool(device->ordinal, pool);
}

DRIVER_CALL cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return inDriver([&]() -> CUresult {
    if (pool == nullptr || poolProps == nullptr ||
        poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
      return CUDA_ERROR_INVALID_VALUE;
    if ((poolProps->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    Device* device = deviceAt(&poolProps->location);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<Pool>(*device, false);
    made->maxBytes = poolProps->maxSize;
    made->shareable = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    *pool = handleOf<CUmemoryPool>(made.get());
    Handles<Pool>::all().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolDestroy(CUmemoryPool pool) {
  return onPool(pool, [&](Pool& found) -> CUresult {
    if (found.isDefault) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(currentMutex);
    const auto chosen = chosenPools().find(&found.device);
    if (chosen != chosenPools().end() && chosen->second.get() == &found)
      chosenPools().erase(chosen);
    Handles<Pool>::all().remove(pool);  // the object lives until its last allocation is freed
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return onPool(pool, [&](Pool& found) -> CUresult {
    const CUresult status = unsafeInCapture();
    if (status != CUDA_SUCCESS) return status;
    found.trim(minBytesToKeep);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return onPool(pool, [&](Pool& found) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : found.set(attr, value);
  });
}

DRIVER_CALL cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return onPool(pool, [&](Pool& found) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : found.get(attr, value);
  });
}

DRIVER_CALL cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return onPool(pool, [&](Pool& found) -> CUresult {
    if (map == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      const Device* device = deviceAt(&map[i].location);
      if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      if (device == &found.device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
      Allocations::all().changeAccess([&] {
        if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
          found.peers.erase(device);
        } else {
          found.peers.insert(device);
        }
      });
    }
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool,
                               CUmemLocation* location) {
  return onPool(memPool, [&](Pool& found) -> CUresult {
    const Device* device = deviceAt(location);
    if (flags == nullptr || device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Allocations::all().changeAccess([&] {
      *flags = found.accessibleFrom(*device) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                             : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    });
    return CUDA_SUCCESS;
  });
}
