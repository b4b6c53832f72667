// Memory of cuMemCreate behind numbers of the worker's own. They stay the same while the memory is
// away, and when it comes back with another handle of the driver.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "driver.h"
#include "native/worker/memory/movable_piece.h"

namespace worker {

/// Thread-safe. The functions are those of the driver, with numbers for its handles.
class ProgramMemory {
 public:
  using Number = CUmemGenericAllocationHandle;

  explicit ProgramMemory(const Driver& below) : below_(below) {}

  CUresult create(Number* number, std::size_t bytes, const CUmemAllocationProp* properties,
                  unsigned long long flags);
  CUresult release(Number number);
  CUresult retain(Number* number, void* address);
  CUresult exportTo(void* file, Number number, CUmemAllocationHandleType type,
                    unsigned long long flags);
  CUresult importFrom(Number* number, void* file, CUmemAllocationHandleType type);
  CUresult properties(CUmemAllocationProp* properties, Number number);
  CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t offset, Number number,
               unsigned long long flags);
  CUresult unmap(CUdeviceptr address, std::size_t bytes);
  CUresult mapArrays(CUarrayMapInfo* list, unsigned count, CUstream stream);

  /// Whether there is memory that other processes have, or may have.
  bool isShared() const;
  bool isEmpty() const;
  /// Appends the memory that can leave. The pieces are valid until the next other call.
  void addPieces(std::vector<MovablePiece>& pieces);

 private:
  /// Has one reference of the driver's, until it has neither references nor mappings.
  struct Memory {
    CUmemGenericAllocationHandle handle = 0;
    std::uint64_t bytes = 0;
    unsigned references = 1;
    unsigned mappings = 0;
    bool shared = false;   ///< with other processes, once
    bool inArray = false;  ///< once
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    Number number = 0;
  };

  Number add(const Memory& memory);
  CUresult settle(Number number);
  Memory* find(Number number);
  bool describe(MovablePiece& piece) const;

  const Driver& below_;
  mutable std::mutex mutex_;
  Number last_ = 0;
  std::map<Number, Memory> memories_;
  std::map<CUdeviceptr, Mapping> mappings_;
};

}  // namespace worker
