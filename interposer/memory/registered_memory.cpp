#include "interposer/memory/registered_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "interposer/memory/host_memory.h"
#include "interposer/memory/moved_pages.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/memory/shared_file.h"
#include "interposer/session/call.h"
#include "interposer/session/log.h"
#include "interposer/session/memory_file.h"
#include "interposer_bodies.h"
#include "wire/memory_maps.h"

namespace interposer {

namespace {

constexpr unsigned kKnownFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

/// Whole pages that the worker has too. Neighbouring registrations may share one.
struct Piece {
  std::uint64_t end = 0;
  MovedFile moved;  ///< no file: the pages are of a file of the program's
};

/// A piece as the worker reads it (SharedMemory::Piece).
struct SentPiece {
  std::uint64_t file, address, bytes, offset;
};

struct Registrations {
  std::mutex mutex;  ///< held during whole calls: client and worker keep the same list
  std::map<std::uint64_t, Piece> pieces;
  /// During a fork: what the child copies.
  std::vector<std::pair<std::vector<wire::MemoryMap>, std::uint64_t>> copies;
  int forkPipe[2] = {-1, -1};
};

Registrations& registrations() {
  static auto* const instance = new Registrations;
  return *instance;
}

std::uint64_t pageOf(std::uint64_t address) { return address & ~std::uint64_t{4095}; }
std::uint64_t pagesEnd(std::uint64_t address) { return pageOf(address + 4095); }

/// A forked child gets private copies of moved pages. The parent waits for them, so that they are
/// what the pages held at the fork, as native memory is.
void beforeFork() {
  registrations().mutex.lock();
  auto& copies = registrations().copies;
  for (const auto& [begin, piece] : registrations().pieces) {
    if (piece.moved) copies.emplace_back(mappingsOf(piece.moved), piece.moved.bytes);
  }
  int* const ends = registrations().forkPipe;
  if (copies.empty() || pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
}

void afterForkInParent() {
  int* const ends = registrations().forkPipe;
  if (ends[0] >= 0) {
    close(ends[1]);
    char nothing = 0;
    while (read(ends[0], &nothing, 1) < 0 && errno == EINTR) continue;  // until the child closes it
    close(ends[0]);
  }
  registrations().copies.clear();
  registrations().mutex.unlock();
}

void afterForkInChild() {
  for (const auto& [maps, bytes] : registrations().copies) copyInChild(maps, bytes);
  registrations().copies.clear();
  registrations().pieces.clear();
  for (const int end : registrations().forkPipe) {
    if (end >= 0) close(end);
  }
  registrations().mutex.unlock();
}

void watchForks() {
  static const bool watched [[maybe_unused]] =
      pthread_atfork(beforeFork, afterForkInParent, afterForkInChild) == 0;
}

bool holdsOwnStack(std::uint64_t begin, std::uint64_t end) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  return here >= begin && here < end;
}

/// Anonymous memory of MAP_HUGETLB. The kernel maps and protects such pages only as a whole.
bool holdsHugePages(std::uint64_t begin, std::uint64_t end) {
  return std::ranges::any_of(wire::memoryMaps(begin, end), [](const wire::MemoryMap& map) {
    return map.path.starts_with("/anon_hugepage");
  });
}

/// Pieces that a registration needs and that are not there yet.
class NewPieces {
 public:
  /// Takes back what was not kept.
  ~NewPieces() {
    for (const auto& [begin, piece] : made_) {
      if (piece.moved) bringBack(piece.moved);
    }
    for (const int file : files_) close(file);
  }
  NewPieces() = default;
  NewPieces(const NewPieces&) = delete;
  NewPieces& operator=(const NewPieces&) = delete;

  /// Pages [begin, end), some of which may be in pieces already.
  CUresult cover(std::uint64_t begin, std::uint64_t end, const std::vector<wire::MemoryMap>& maps);
  /// Hands the files to the worker. Call it when nothing else can fail.
  bool send();
  std::span<const SentPiece> sent() const { return sent_; }
  void keep() {
    registrations().pieces.merge(made_);
    made_.clear();
  }

 private:
  CUresult fill(std::uint64_t begin, std::uint64_t end, const std::vector<wire::MemoryMap>& maps);
  CUresult move(std::uint64_t begin, std::uint64_t end);
  CUresult open(std::uint64_t begin, std::uint64_t end, const wire::MemoryMap& map);
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t offset, int file,
           MovedFile moved) {
    made_[begin] = {end, std::move(moved)};
    sent_.push_back({0, begin, end - begin, offset});
    files_.push_back(file);
  }

  std::map<std::uint64_t, Piece> made_;
  std::vector<SentPiece> sent_;
  std::vector<int> files_;  ///< of sent_
};

bool NewPieces::send() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    sent_[i].file = Session::current()->sendMemory(files_[i]);
    if (sent_[i].file == 0) return false;
  }
  return true;
}

CUresult NewPieces::move(std::uint64_t begin, std::uint64_t end) {
  if (holdsOwnStack(begin, end)) {
    log("cuMemHostRegister: the memory is the calling thread's stack, which cannot be shared with "
        "the GPU worker; register memory of the heap");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  watchForks();
  const int file = createMemoryFile(end - begin);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  MovedFile moved = moveToFile(begin, end, file);
  if (moved) return add(begin, end, 0, file, std::move(moved)), CUDA_SUCCESS;
  close(file);
  if (holdsHugePages(begin, end)) {
    log("cuMemHostRegister: the memory is part of a huge page, which cannot be shared with the GPU "
        "worker; register whole huge pages, or use cuMemHostAlloc");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  log("cuMemHostRegister: %llu bytes cannot be shared with the GPU worker: the system refuses more "
      "shared memory; raise the memory limit, or use cuMemHostAlloc",
      static_cast<unsigned long long>(end - begin));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult NewPieces::open(std::uint64_t begin, std::uint64_t end, const wire::MemoryMap& map) {
  const int file = openFileOf(map);
  if (file >= 0) return add(begin, end, map.offset + (begin - map.begin), file, {}), CUDA_SUCCESS;
  log("cuMemHostRegister: the file of a shared mapping (%s) cannot be opened: its descriptor is "
      "closed, and no path leads to it; keep the descriptor, or use cuMemHostAlloc",
      map.path.c_str());
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// Private mappings beside each other move together.
CUresult NewPieces::fill(std::uint64_t begin, std::uint64_t end,
                         const std::vector<wire::MemoryMap>& maps) {
  for (std::size_t i = 0; begin < end && i < maps.size(); ++i) {
    if (maps[i].end <= begin) continue;
    std::size_t last = i;
    while (!maps[i].shared && last + 1 < maps.size() && !maps[last + 1].shared) ++last;
    const std::uint64_t stop = std::min(end, maps[last].end);
    const CUresult status = maps[i].shared ? open(begin, stop, maps[i]) : move(begin, stop);
    if (status != CUDA_SUCCESS) return status;
    begin = stop;
  }
  return CUDA_SUCCESS;
}

CUresult NewPieces::cover(std::uint64_t begin, std::uint64_t end,
                          const std::vector<wire::MemoryMap>& maps) {
  const auto& there = registrations().pieces;
  while (begin < end) {
    auto next = there.upper_bound(begin);
    if (next != there.begin() && std::prev(next)->second.end > begin) {
      begin = std::prev(next)->second.end;
      continue;
    }
    const std::uint64_t stop = next == there.end() ? end : std::min(end, next->first);
    if (const CUresult status = fill(begin, stop, maps); status != CUDA_SUCCESS) return status;
    begin = stop;
  }
  return CUDA_SUCCESS;
}

/// Forgets the pieces that no registration touches, as the worker does, and returns their pages.
void releasePieces() {
  auto& pieces = registrations().pieces;
  for (auto next = pieces.begin(); next != pieces.end();) {
    const auto& [begin, piece] = *next;
    if (overlappingHostRange(begin, piece.end - begin)) {
      ++next;
      continue;
    }
    if (piece.moved) bringBack(piece.moved);
    next = pieces.erase(next);
  }
}

/// Whether the range is mapped and has the rights that the registration needs.
bool isUsable(std::uint64_t begin, std::uint64_t end, unsigned flags,
              const std::vector<wire::MemoryMap>& maps) {
  const bool readOnly = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  const int needed = readOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  for (const wire::MemoryMap& map : maps) {
    if (map.begin > begin || (map.protection & needed) != needed) return false;
    begin = map.end;
  }
  return begin >= end;
}

CUresult sendRegistration(std::uint64_t begin, std::size_t bytes, unsigned flags,
                          std::span<const SentPiece> pieces) {
  Call call;
  if (!call.begin(CallNumber::cuMemHostRegister_v2, 48 + pieces.size_bytes(), kOrdered))
    return call.status();
  call.encoder().put(begin);
  call.encoder().put<std::uint64_t>(bytes);
  call.encoder().put(flags);
  call.encoder().putBytes(pieces.data(), pieces.size_bytes());
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult registerRange(std::uint64_t begin, std::size_t bytes, unsigned flags) {
  const std::uint64_t first = pageOf(begin);
  const std::uint64_t last = pagesEnd(begin + bytes);
  const std::vector<wire::MemoryMap> maps = wire::memoryMaps(first, last);
  if (!isUsable(first, last, flags, maps)) return CUDA_ERROR_INVALID_VALUE;
  NewPieces pieces;
  CUresult status = pieces.cover(first, last, maps);
  if (status == CUDA_SUCCESS && !pieces.send()) status = CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (status == CUDA_SUCCESS) status = sendRegistration(begin, bytes, flags, pieces.sent());
  if (status == CUDA_ERROR_OPERATING_SYSTEM)
    log("cuMemHostRegister: the GPU worker cannot map %zu bytes of the program at their address: "
        "it is in use there, the file is too short, or the bytes are part of a huge page; use "
        "cuMemHostAlloc",
        bytes);
  if (status != CUDA_SUCCESS) return status;
  pieces.keep();
  addHostRange({begin, bytes, flags, HostKind::registered, Thread::current().context()});
  return CUDA_SUCCESS;
}

}  // namespace

void endRegistrations(CUcontext context) {
  for (const HostRange& range : hostRangesOf(context, HostKind::registered))
    interposer::cuMemHostUnregister(reinterpret_cast<void*>(range.begin));
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (p == nullptr || bytesize == 0 || (Flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  // A pod has no memory of a device.
  if ((Flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto begin = reinterpret_cast<std::uint64_t>(p);
  if (bytesize > ~std::uint64_t{0} - 4096 - begin) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(registrations().mutex);
  if (const auto there = overlappingHostRange(begin, bytesize))
    return there->kind == HostKind::registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                               : CUDA_ERROR_INVALID_VALUE;
  return registerRange(begin, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const auto begin = reinterpret_cast<std::uint64_t>(p);
  const std::lock_guard lock(registrations().mutex);
  const auto range = findHostRange(begin);
  if (!range || range->begin != begin || range->kind != HostKind::registered)
    return range || p == nullptr || isDevice(begin) ? CUDA_ERROR_INVALID_VALUE
                                                    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  Call call;
  if (!call.begin(CallNumber::cuMemHostUnregister, 8, kOrdered)) return call.status();
  call.encoder().put(begin);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  removeHostRange(begin);
  releasePieces();
  return CUDA_SUCCESS;
}

}  // namespace interposer
