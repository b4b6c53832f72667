// Memory of allocation nodes, and the calls about all memory of graphs on a device.
#include "native/simulator/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/graph_mutex.h"

namespace simulator {
namespace {

/// Memory of a device that all graphs hold together. Thread-safe.
class Account {
 public:
  bool charge(Device& device, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t needed = (used_ + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (needed > reserved_) {
      if (!device.charge(needed - reserved_)) return false;
      reserved_ = needed;
    }
    used_ += bytes;
    usedHigh_ = std::max(usedHigh_, used_);
    reservedHigh_ = std::max(reservedHigh_, reserved_);
    return true;
  }
  void release(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  void trim(Device& device) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t kept = (used_ + kPageBytes - 1) / kPageBytes * kPageBytes;
    device.release(reserved_ - kept);
    reserved_ = kept;
  }
  CUresult get(CUgraphMem_attribute attribute, cuuint64_t& value) {
    const std::lock_guard lock(mutex_);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: value = used_; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: value = usedHigh_; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: value = reserved_; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: value = reservedHigh_; return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  /// The high-water marks can only be reset.
  CUresult reset(CUgraphMem_attribute attribute) {
    const std::lock_guard lock(mutex_);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: usedHigh_ = used_; return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: reservedHigh_ = reserved_; return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }

 private:
  std::mutex mutex_;
  std::uint64_t used_ = 0, usedHigh_ = 0, reserved_ = 0, reservedHigh_ = 0;
};

Account& accountOf(const Device& device) {
  static std::mutex mutex;
  static auto& accounts = *new std::map<const Device*, Account>;
  const std::lock_guard lock(mutex);
  return accounts[&device];
}

/// Keeps memory that is allocated after the graph has ended. Guarded by graphMutex().
std::map<std::uint64_t, std::shared_ptr<GraphMemory>>& outstanding() {
  static auto& memory = *new std::map<std::uint64_t, std::shared_ptr<GraphMemory>>;
  return memory;
}

Device* deviceAt(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? findDevice(location.id) : nullptr;
}

}  // namespace

GraphMemory::~GraphMemory() {
  Allocations::all().take(address, [](const Allocation&) { return true; });
  Arena::instance().release(address);
  if (charged) accountOf(device).release(bytes);
}

void GraphMemory::setAccessible(bool accessible) {
  Allocations::all().update(address,
                            [&](Allocation& allocation) { allocation.accessible = accessible; });
}

bool GraphMemory::charge() {
  if (!charged) charged = accountOf(device).charge(device, bytes);
  return charged;
}

CUresult reserve(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters,
                 const std::vector<CUmemAccessDesc>& access, std::shared_ptr<GraphMemory>& memory) {
  if (parameters.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || parameters.bytesize == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (parameters.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = deviceAt(parameters.poolProps.location);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  for (const CUmemAccessDesc& description : access) {
    const Device* other = deviceAt(description.location);
    if (other == nullptr) return CUDA_ERROR_INVALID_VALUE;
    allocation.access.insert(other);
  }
  if (parameters.bytesize > device->totalBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation.begin = Arena::instance().allocate(nullptr, parameters.bytesize);
  if (allocation.begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  memory = std::make_shared<GraphMemory>(*device, allocation.begin, parameters.bytesize);
  allocation.size = parameters.bytesize;
  allocation.kind = MemoryKind::graph;
  allocation.device = device;
  allocation.accessible = false;
  allocation.graph = memory;
  Allocations::all().add(std::move(allocation));
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphMemory> findGraphMemory(std::uint64_t address) {
  const auto found = Allocations::all().find(address);
  return found && found->begin == address ? found->graph.lock() : nullptr;
}

void setOutstanding(const std::shared_ptr<GraphMemory>& memory, bool is) {
  memory->outstanding = is;
  if (is) {
    outstanding()[memory->address] = memory;
  } else {
    outstanding().erase(memory->address);
  }
}

std::shared_ptr<GraphMemory> takeOutstanding(std::uint64_t address) {
  const std::lock_guard lock(graphMutex());
  auto memory = findGraphMemory(address);
  if (memory == nullptr || !memory->outstanding) return nullptr;
  setOutstanding(memory, false);
  return memory;
}

}  // namespace simulator

using namespace simulator;

namespace {

/// Runs body(Device&) on a device.
template <class Body>
CUresult onDevice(CUdevice ordinal, Body&& body) {
  return inDriver([&]() -> CUresult {
    Device* device = findDevice(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

}  // namespace

DRIVER_CALL cuDeviceGraphMemTrim(CUdevice device) {
  return onDevice(device, [](Device& found) -> CUresult {
    std::vector<std::weak_ptr<GraphMemory>> all;
    Allocations::all().each([&](const Allocation& allocation) {
      if (allocation.kind == MemoryKind::graph && allocation.device == &found)
        all.push_back(allocation.graph);
    });
    for (const auto& weak : all) {
      const auto memory = weak.lock();
      if (memory == nullptr) continue;
      const std::lock_guard lock(graphMutex());
      const bool used = memory->lastUse != nullptr && !memory->lastUse->done();
      if (!memory->charged || memory->outstanding || used) continue;
      memory->charged = false;
      accountOf(found).release(memory->bytes);
    }
    accountOf(found).trim(found);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return onDevice(device, [&](Device& found) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE
                            : accountOf(found).get(attr, *static_cast<cuuint64_t*>(value));
  });
}

DRIVER_CALL cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return onDevice(device, [&](Device& found) {
    return value == nullptr || *static_cast<const cuuint64_t*>(value) != 0
               ? CUDA_ERROR_INVALID_VALUE
               : accountOf(found).reset(attr);
  });
}
