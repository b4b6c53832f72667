// Pointer attributes: cuPointerGetAttribute and its family.
#include <cstring>
#include <optional>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"

using namespace simulator;

namespace {

template <class Value>
CUresult put(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUmemorytype memoryType(const Allocation& allocation) {
  return allocation.host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUcontext contextOf(const Allocation& allocation) {
  return allocation.context == nullptr ? nullptr : handleOf<CUcontext>(allocation.context);
}

int ordinalOf(const Allocation& allocation) {
  const Device* device =
      allocation.device != nullptr ? allocation.device : &allocation.context->device;
  return device->ordinal;
}

/// Bounds of the whole pages that the allocation lies in.
std::uint64_t mappingBegin(const Allocation& allocation) {
  return allocation.begin / kPageBytes * kPageBytes;
}
std::uint64_t mappingEnd(const Allocation& allocation) {
  return (allocation.end() + kPageBytes - 1) / kPageBytes * kPageBytes;
}

CUresult get(const Allocation& allocation, CUpointer_attribute attribute, CUdeviceptr ptr,
             void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, contextOf(allocation));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, static_cast<unsigned>(memoryType(allocation)));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (allocation.host() || allocation.managed()) return put(data, ptr);
      put(data, std::uint64_t{0});
      return CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, static_cast<int>(allocation.synchronous));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, static_cast<unsigned long long>(allocation.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, static_cast<int>(allocation.managed()));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, ordinalOf(allocation));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return put(data, static_cast<int>(0));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, allocation.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, static_cast<std::size_t>(allocation.size));
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, static_cast<int>(1));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data, cuuint64_t{allocation.handleTypes});
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put(data, static_cast<int>(0));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, static_cast<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, handleOf<CUmemoryPool>(allocation.pool.get()));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(data, mappingEnd(allocation) - mappingBegin(allocation));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return put(data, mappingBegin(allocation));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(data, static_cast<unsigned long long>(allocation.id));
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// Writes the value of an attribute that the pointer does not have. False if the attribute does not
/// exist.
bool clear(CUpointer_attribute attribute, CUdeviceptr ptr, bool known, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: put(data, known ? 0 : ptr); break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: put(data, std::uint64_t{0}); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put(data, static_cast<int>(CU_DEVICE_INVALID)); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: put(data, 0); break;
    default: return false;
  }
  return true;
}

}  // namespace

/// Queries need no current context: programs ask with them which context owns memory.
DRIVER_CALL cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return inDriver([&]() -> CUresult {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = Allocations::all().find(ptr);
    return found ? get(*found, attribute, ptr, data) : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                   void** data, CUdeviceptr ptr) {
  return inDriver([&]() -> CUresult {
    if (attributes == nullptr || data == nullptr || numAttributes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    const auto found = Allocations::all().find(ptr);
    for (unsigned i = 0; i < numAttributes; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (found && get(*found, attributes[i], ptr, data[i]) == CUDA_SUCCESS) continue;
      if (!clear(attributes[i], ptr, found.has_value(), data[i])) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                  CUdeviceptr ptr) {
  return inContextDespiteFault([&](Context&) -> CUresult {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
      return CUDA_ERROR_INVALID_VALUE;
    int synchronous = 0;
    std::memcpy(&synchronous, value, sizeof synchronous);
    const bool known = Allocations::all().update(
        ptr, [&](Allocation& allocation) { allocation.synchronous = synchronous != 0; });
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
