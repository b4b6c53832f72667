// The worker's own allocator: the memory of cuMemAlloc, made from handles that are mapped at
// addresses of the worker's choice. So the memory can leave the GPU and come back at the same
// addresses (docs/decisions/2026-11-27-memory-that-can-leave.md).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "driver.h"
#include "native/worker/accounts/context_owner.h"
#include "native/worker/memory/free_ranges.h"
#include "native/worker/memory/movable_piece.h"
#include "native/worker/memory/pool_memory.h"
#include "native/worker/memory/program_memory.h"
#include "native/worker/session/captures.h"

namespace worker {

/// Thread-safe. Puts itself between the worker and the driver: the calls keep their meaning, and
/// what a program could tell from the difference is answered from the table.
class MovableMemory {
 public:
  MovableMemory(const Captures& captures, ContextOwner owner)
      : captures_(captures), owner_(std::move(owner)) {}
  ~MovableMemory();
  MovableMemory(const MovableMemory&) = delete;
  MovableMemory& operator=(const MovableMemory&) = delete;

  /// Replaces the functions of `driver` that concern memory of cuMemAlloc. Only one object of the
  /// process may be installed at a time. `exact`: the memory comes from the driver's cuMemAlloc
  /// nevertheless, and cannot leave.
  void install(Driver& driver, bool exact);
  /// The driver's own functions.
  const Driver& below() const { return below_; }

  /// Takes a few bytes of the driver's own memory, with which free() waits: later the GPU may be
  /// full. Call it before what the context holds is measured.
  void contextMade(CUcontext context);

  /// cuMemAlloc for the current context.
  CUresult allocate(CUdeviceptr* address, std::size_t bytes);
  /// What cuMemAllocPitch asks for: rows are padded to 512 bytes, as the driver's are (H200, driver
  /// 580). Saturates on overflow.
  static std::uint64_t pitchedBytes(std::size_t width, std::size_t height);
  CUresult allocatePitched(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                           std::size_t height, unsigned element);
  /// cuMemFree: waits for the work of the memory's context.
  CUresult free(CUdeviceptr address);

  /// Memory that the program has freed, and that work may still use.
  using Parted = std::uint64_t;
  /// From now on the program does not have this memory. Empty if it is none of cuMemAlloc.
  std::optional<Parted> part(CUdeviceptr address);
  /// The work has ended.
  void release(Parted parted);

  /// cuMemFreeAsync of memory of the driver's cuMemAlloc, which is parted then. Empty for other
  /// memory.
  std::optional<CUresult> freeBehind(CUdeviceptr address, CUstream stream, Parted* freed);

  /// The context has ended; so does its memory. Returns the addresses of its allocations.
  std::vector<CUdeviceptr> contextEnded(CUcontext context);

  /// To be held from the check of an address until the work is submitted: the memory is then not
  /// unmapped before the work has run.
  std::shared_lock<std::shared_mutex> submit() { return std::shared_lock(submissions_); }
  /// Waits for the submissions that may still use memory which the program has freed.
  void awaitSubmissions();
  /// Waits for the work of a context as the driver's cuMemFree does, which is exact about captures.
  CUresult await(CUcontext context);

  enum class Place {
    elsewhere,  ///< no memory of this object
    inside,     ///< inside one allocation
    outside     ///< in memory of this object, but not inside one allocation
  };
  Place place(CUdeviceptr address, std::uint64_t bytes) const;
  /// Whether part of the range is memory of this object.
  bool touches(CUdeviceptr address, std::uint64_t bytes) const;

  struct Allocation {
    CUdeviceptr begin = 0;
    std::uint64_t bytes = 0;          ///< asked for
    std::uint64_t id = 0;             ///< never given again in this process
    CUcontext context = nullptr;      ///< null for memory of a pool
    CUmemoryPool pool = nullptr;      ///< null for memory of cuMemAlloc
    std::optional<bool> synchronous;  ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, once it was set
  };
  /// The allocation that an address lies in.
  std::optional<Allocation> find(CUdeviceptr address) const;
  void setSynchronous(CUdeviceptr address, bool on);

  /// Bytes of the pages of small requests beyond these requests and, on each GPU, beyond `borne`.
  std::uint64_t slack(std::uint64_t borne = 0) const;

  /// What another process needs to open memory that begins at an address.
  struct Geometry {
    std::uint64_t offset = 0;  ///< of the allocation in the handle
    std::uint64_t bytes = 0;   ///< asked for
    std::uint64_t mapped = 0;  ///< bytes of the handle
  };
  /// Exports the memory as a file descriptor. CUDA_ERROR_NOT_SUPPORTED if it is of the driver's
  /// cuMemAlloc.
  CUresult exportFile(CUdeviceptr begin, int* file, Geometry* geometry);
  using Name = std::array<std::byte, 16>;
  /// cuIpcOpenMemHandle of memory that another process exported. Each name has one address in a
  /// context.
  CUresult open(const Name& name, int file, const Geometry& geometry, CUdeviceptr* address);
  /// The address of a name that the current context has open, once more. Empty if it has not.
  std::optional<CUdeviceptr> openAgain(const Name& name);
  /// cuIpcCloseMemHandle: waits for the work of the context at the last one. The memory goes even
  /// if the context is broken.
  CUresult close(CUdeviceptr address);

  /// The error of a call whose address is outside of all memory: of the context, if that is broken.
  CUresult refusal() const;

  /// Memory that the program maps itself.
  ProgramMemory& mapped() { return mapped_; }
  /// Memory of pools.
  PoolMemory& pools() { return pools_; }
  const PoolMemory& pools() const { return pools_; }
  /// Frees what is kept for later requests.
  void trim();
  /// Whether there is any memory, also such that cannot leave.
  bool holdsMemory() const;
  /// Whether other processes have some of the memory, or may have.
  bool isShared() const;
  /// The memory that can leave. The pieces are valid while no call of the program is executed.
  std::vector<MovablePiece> pieces();

 private:
  struct Block {
    std::uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;  ///< 0: memory of the driver's cuMemAlloc, or away
    CUdevice device = 0;
    CUcontext owner = nullptr;
    bool shared = false;           ///< by small allocations
    unsigned opened = 0;           ///< references to memory of another process
    bool exported = false;         ///< once
    bool leaving = false;          ///< is being unmapped
    std::uint64_t allocation = 0;  ///< id of the only one in it; 0: others share it
  };
  struct Entry {
    Allocation allocation;
    CUdeviceptr block = 0;  ///< where its block begins
    CUdevice device = 0;
    bool small = false;  ///< shares pages with others
  };
  /// Small requests on one GPU.
  struct Small {
    std::uint64_t requests = 0;  ///< their bytes
    std::uint64_t pages = 0;     ///< bytes of their pages
  };
  /// The current context, as the owner of memory, and its device.
  struct Here {
    CUcontext owner = nullptr;
    CUdevice device = 0;
  };
  using Opening = std::pair<Name, CUcontext>;

  CUresult here(Here* here) const;
  CUresult fault() const;
  CUresult make(const Here& here, std::uint64_t bytes, CUdeviceptr* begin);
  CUresult map(const Block& block, CUdeviceptr* begin);
  void end(CUdeviceptr begin, const Block& block);
  CUresult allocateSmall(const Here& here, std::uint64_t bytes, CUdeviceptr* address);
  CUresult allocateExact(const Here& here, std::uint64_t bytes, CUdeviceptr* address);
  Entry& add(const Here& here, CUdeviceptr begin, std::uint64_t bytes, CUdeviceptr block);
  void count(Entry& entry);
  void uncount(const Entry& entry);
  CUresult create(Block& block);
  bool endKept(CUcontext owner);
  void keepSpare(CUcontext context);
  CUresult awaitHere(CUcontext context);
  CUresult freePooled(CUdeviceptr address);
  void restore(Parted parted);
  void giveBack(const Entry& entry);
  bool isBlockOf(const Entry& entry) const;
  const Entry* entryOf(CUdeviceptr address) const;
  bool isInBlock(CUdeviceptr address) const;

  const Captures& captures_;
  const ContextOwner owner_;
  Driver below_;
  ProgramMemory mapped_{below_};
  PoolMemory pools_{below_, captures_, owner_};
  bool exact_ = false;
  std::shared_mutex submissions_;
  mutable std::shared_mutex mutex_;
  std::mutex spareMutex_;  ///< so that a context has one spare only
  std::map<CUdeviceptr, Block> blocks_;
  std::map<CUdeviceptr, Entry> entries_;
  std::map<CUcontext, FreeRanges> free_;
  std::map<CUcontext, std::vector<CUdeviceptr>>
      spares_;  ///< of the driver's cuMemAlloc, for await()
  std::map<Parted, Entry> parted_;
  std::map<Opening, CUdeviceptr> openings_;
  std::uint64_t lastId_ = 0;
  std::map<CUdevice, Small> small_;
  std::map<CUdeviceptr, std::uint64_t>
      driverPages_;  ///< small requests in each page of the driver's cuMemAlloc
};

}  // namespace worker
