// Virtual memory management: reserves addresses, creates memory, and maps memory at addresses.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/memory_user.h"
#include "native/simulator/reservation.h"
#include "native/simulator/virtual_memory.h"
#include "wire/anonymous_file.h"

namespace simulator {
namespace {

struct Mapping {
  std::uint64_t size;
  CUmemGenericAllocationHandle handle;
  std::shared_ptr<Physical> physical;
};

struct Handle {
  std::shared_ptr<Physical> physical;
  unsigned references =
      1;  ///< cuMemCreate, import and cuMemRetainAllocationHandle minus cuMemRelease
};

struct VirtualMemory {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> reserved;  ///< begin -> size
  std::map<std::uint64_t, Mapping> mapped;          ///< begin -> mapping
  std::map<CUmemGenericAllocationHandle, Handle> handles;
  CUmemGenericAllocationHandle nextHandle = 1;
};

VirtualMemory& state() {
  static auto& memory = *new VirtualMemory;
  return memory;
}

bool wholePages(std::uint64_t value) { return value != 0 && value % kPageBytes == 0; }

bool insideReservation(const VirtualMemory& memory, std::uint64_t begin, std::uint64_t size) {
  auto next = memory.reserved.upper_bound(begin);
  if (next == memory.reserved.begin()) return false;
  const auto& [first, length] = *std::prev(next);
  return begin - first <= length && size <= length - (begin - first);
}

bool touchesMapping(const VirtualMemory& memory, std::uint64_t begin, std::uint64_t size) {
  auto next = memory.mapped.lower_bound(begin);
  if (next != memory.mapped.end() && next->first - begin < size) return true;
  return next != memory.mapped.begin() &&
         std::prev(next)->first + std::prev(next)->second.size > begin;
}

/// The mappings that exactly cover [begin, begin + size); empty if there are none, or gaps.
std::vector<std::uint64_t> mappingsOf(const VirtualMemory& memory, std::uint64_t begin,
                                      std::uint64_t size) {
  std::vector<std::uint64_t> found;
  std::uint64_t next = begin;
  while (next < begin + size) {
    const auto mapping = memory.mapped.find(next);
    if (mapping == memory.mapped.end()) return {};
    found.push_back(next);
    next += mapping->second.size;
  }
  return next == begin + size ? found : std::vector<std::uint64_t>{};
}

Device* deviceOf(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return nullptr;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
  return findDevice(properties->location.id);
}

/// Creates the memory of a new handle; null on failure.
std::shared_ptr<Physical> createPhysical(Device& device, std::size_t size,
                                         const CUmemAllocationProp& properties) {
  if (!device.charge(size)) return nullptr;
  const int file = wire::createAnonymousFile("simulated-gpu-memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) {
    if (file >= 0) close(file);
    device.release(size);
    return nullptr;
  }
  auto physical = std::make_shared<Physical>(device, size, file, true);
  physical->properties = properties;
  const bool shareable = properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  return shareable && !describeFile(*physical) ? nullptr : physical;
}

/// Does not wait for work that runs: its next access to the memory is a fault, as on an H200. The
/// mapping keeps the memory until no access uses it any more.
void unmap(VirtualMemory& memory, const std::vector<std::uint64_t>& mappings) {
  for (const std::uint64_t begin : mappings)
    Allocations::all().take(begin, [](const Allocation&) { return true; });
  revokeMemory();
  for (const std::uint64_t begin : mappings) {
    const auto node = memory.mapped.extract(begin);
    mmap(reinterpret_cast<void*>(begin), node.mapped().size, kProtection, kReservation | MAP_FIXED,
         -1, 0);
  }
}

}  // namespace

Physical::~Physical() {
  close(file);
  if (charged) device.release(size);
}

CUmemGenericAllocationHandle addPhysical(std::shared_ptr<Physical> physical) {
  VirtualMemory& memory = state();
  const std::lock_guard lock(memory.mutex);
  const CUmemGenericAllocationHandle handle = memory.nextHandle++;
  memory.handles.emplace(handle, Handle{std::move(physical)});
  return handle;
}

std::shared_ptr<Physical> findPhysical(CUmemGenericAllocationHandle handle) {
  VirtualMemory& memory = state();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.handles.find(handle);
  return found == memory.handles.end() ? nullptr : found->second.physical;
}

std::shared_ptr<Physical> physicalIn(int file) {
  struct stat wanted {};
  if (fstat(file, &wanted) != 0) return nullptr;
  const auto same = [&](const Physical& physical) {
    struct stat status {};
    return fstat(physical.file, &status) == 0 && status.st_ino == wanted.st_ino &&
           status.st_dev == wanted.st_dev;
  };
  VirtualMemory& memory = state();
  const std::lock_guard lock(memory.mutex);
  for (const auto& [handle, known] : memory.handles)
    if (same(*known.physical)) return known.physical;
  for (const auto& [begin, mapping] : memory.mapped)
    if (same(*mapping.physical)) return mapping.physical;
  return nullptr;
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    if (ptr == nullptr || !wholePages(size) || flags != 0 || (alignment & (alignment - 1)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t unit = alignment > kPageBytes ? alignment : kPageBytes;
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    // The requested address is a hint: if it is not available, another one is used.
    std::uint64_t begin = addr != 0 && addr % unit == 0 && reserveAt(addr, size) ? addr : 0;
    if (begin == 0) begin = reserveAnywhere(size, unit);
    if (begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    memory.reserved.emplace(begin, size);
    *ptr = begin;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return inDriver([&]() -> CUresult {
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = memory.reserved.find(ptr);
    if (found == memory.reserved.end() || found->second != size ||
        touchesMapping(memory, ptr, size))
      return CUDA_ERROR_INVALID_VALUE;
    giveBackReserved(ptr, size);
    memory.reserved.erase(found);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                          CUmemAllocationGranularity_flags option) {
  return inDriver([&]() -> CUresult {
    if (granularity == nullptr || deviceOf(prop) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (static_cast<unsigned>(option) > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
      return CUDA_ERROR_INVALID_VALUE;
    *granularity = kPageBytes;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                        const CUmemAllocationProp* prop, unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    if (handle == nullptr || flags != 0 || !wholePages(size)) return CUDA_ERROR_INVALID_VALUE;
    Device* device = deviceOf(prop);
    if (device == nullptr)
      return prop == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    auto physical = createPhysical(*device, size, *prop);
    if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = addPhysical(std::move(physical));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemRelease(CUmemGenericAllocationHandle handle) {
  return inDriver([&]() -> CUresult {
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = memory.handles.find(handle);
    if (found == memory.handles.end()) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.references == 0) memory.handles.erase(found);  // mappings keep the memory
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = memory.handles.find(handle);
    if (found == memory.handles.end() || flags != 0 || offset != 0 || !wholePages(size) ||
        !wholePages(ptr))
      return CUDA_ERROR_INVALID_VALUE;
    const auto& physical = found->second.physical;
    if (size > physical->size || !insideReservation(memory, ptr, size) ||
        touchesMapping(memory, ptr, size))
      return CUDA_ERROR_INVALID_VALUE;
    if (mmap(reinterpret_cast<void*>(ptr), size, kProtection, MAP_SHARED | MAP_FIXED,
             physical->file, 0) == MAP_FAILED) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Allocation allocation;
    allocation.begin = ptr;
    allocation.size = size;
    allocation.kind = MemoryKind::mapped;
    allocation.device = &physical->device;
    allocation.handle = handle;
    allocation.handleTypes = physical->properties.requestedHandleTypes;
    Allocations::all().add(std::move(allocation));
    memory.mapped.emplace(ptr, Mapping{size, handle, physical});
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return inDriver([&]() -> CUresult {
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = mappingsOf(memory, ptr, size);
    if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
    unmap(memory, found);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc,
                           size_t count) {
  return inDriver([&]() -> CUresult {
    if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = mappingsOf(memory, ptr, size);
    if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
    bool withdrawn = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
      const Device* device = findDevice(desc[i].location.id);
      if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      const bool allowed = desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
      withdrawn |= !allowed;
      for (const std::uint64_t begin : found) {
        Allocations::all().update(begin, [&](Allocation& allocation) {
          if (allowed) {
            allocation.access.insert(device);
          } else {
            allocation.access.erase(device);
          }
        });
      }
    }
    if (withdrawn) revokeMemory();
    return CUDA_SUCCESS;
  });
}

/// Memory of cuMemAlloc has no access of its own (recorded).
DRIVER_CALL cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                           CUdeviceptr ptr) {
  return inDriver([&]() -> CUresult {
    if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    const Device* device = findDevice(location->id);
    const auto found = Allocations::all().find(ptr);
    if (device == nullptr || !found ||
        (found->kind != MemoryKind::mapped && found->kind != MemoryKind::device))
      return CUDA_ERROR_INVALID_VALUE;
    const bool accessible = found->kind == MemoryKind::mapped && found->access.contains(device);
    *flags = accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return inDriver([&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = Allocations::all().find(reinterpret_cast<std::uint64_t>(addr));
    if (!found || found->kind != MemoryKind::mapped) return CUDA_ERROR_INVALID_VALUE;
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto mapping = memory.mapped.find(found->begin);
    if (mapping == memory.mapped.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto [entry, revived] =
        memory.handles.try_emplace(mapping->second.handle, Handle{mapping->second.physical});
    if (!revived) ++entry->second.references;
    *handle = entry->first;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                   CUmemGenericAllocationHandle handle) {
  return inDriver([&]() -> CUresult {
    VirtualMemory& memory = state();
    const std::lock_guard lock(memory.mutex);
    const auto found = memory.handles.find(handle);
    if (prop == nullptr || found == memory.handles.end()) return CUDA_ERROR_INVALID_VALUE;
    *prop = found->second.physical->properties;
    return CUDA_SUCCESS;
  });
}
