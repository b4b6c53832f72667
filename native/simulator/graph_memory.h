// Memory of allocation nodes. A node has its addresses from the beginning; its bytes count against
// the device from the first launch until it ends or cuDeviceGraphMemTrim finds it unused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/completion.h"

namespace simulator {

class Device;

/// Guarded by graphMutex(), but for setAccessible() and the destructor.
struct GraphMemory {
  GraphMemory(Device& device_, std::uint64_t address_, std::size_t bytes_)
      : device(device_), address(address_), bytes(bytes_) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  Device& device;
  const std::uint64_t address;
  const std::size_t bytes;
  std::uint64_t allocatedBy = 0;  ///< id of the graph with the allocation node
  std::uint64_t freedBy = 0;      ///< id of the last graph that got a free node; 0: none
  bool charged = false;           ///< its bytes count
  bool outstanding = false;       ///< by the order of the calls: allocated and not freed
  std::shared_ptr<const Completion> lastUse;  ///< the last launch that needs it

  /// A graph frees an allocation once, and either the owner does or another graph.
  bool mayBeFreedBy(std::uint64_t graph) const {
    return freedBy == 0 || (freedBy != graph && freedBy != allocatedBy && graph != allocatedBy);
  }
  /// False if the device is full.
  bool charge();
  /// In the order of execution: whether kernels may use it.
  void setAccessible(bool accessible);
};

/// Reserves addresses for an allocation node. The devices in `access` may use them, too.
CUresult reserve(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters,
                 const std::vector<CUmemAccessDesc>& access, std::shared_ptr<GraphMemory>& memory);
/// The memory of the allocation node with this address; null if there is none.
std::shared_ptr<GraphMemory> findGraphMemory(std::uint64_t address);

/// Notes that a call allocates or frees the memory. What is outstanding outlives the graph.
void setOutstanding(const std::shared_ptr<GraphMemory>& memory, bool is);
/// The memory with this address, which is no longer outstanding; null if it was not. Locks
/// graphMutex().
std::shared_ptr<GraphMemory> takeOutstanding(std::uint64_t address);

}  // namespace simulator
