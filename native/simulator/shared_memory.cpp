#include "native/simulator/shared_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "native/simulator/allocations.h"
#include "native/simulator/arena.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/pool.h"
#include "native/simulator/reservation.h"

namespace simulator {
namespace {

struct Import {
  const void* owner;  ///< context or pool; null: no import gets it any more
  wire::FileKey key;
  std::uint64_t mapped;  ///< begin of the mapping, which is that of the whole file
  std::uint64_t bytes;
  unsigned references;
};

struct Shared {
  std::mutex mutex;
  std::map<std::uint64_t, ExportedMemory> exported;  ///< by address
  std::map<std::uint64_t, Import> imported;          ///< by address
};

Shared& state() {
  static auto& shared = *new Shared;
  return shared;
}

/// Maps the whole file; closes it. Returns 0 if the memory does not lie in the file.
std::uint64_t mapFile(int file, const ExportedMemory& name, std::uint64_t& bytes) {
  struct stat status {};
  std::uint64_t begin = 0;
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    bytes = static_cast<std::uint64_t>(status.st_size);
    if (name.offset <= bytes && name.size <= bytes - name.offset)
      begin = reserveAnywhere(bytes, kPageBytes);
  }
  if (begin != 0 && mmap(reinterpret_cast<void*>(begin), bytes, kProtection, MAP_SHARED | MAP_FIXED,
                         file, 0) == MAP_FAILED) {
    giveBackReserved(begin, bytes);
    begin = 0;
  }
  close(file);
  return begin;
}

}  // namespace

Device* deviceWithIndex(int index) {
  const auto found =
      std::ranges::find(devices(), index, [](const auto& each) { return each->index; });
  return found == devices().end() ? nullptr : found->get();
}

CUresult exportMemory(const Allocation& allocation, ExportedMemory& name) {
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (const auto known = shared.exported.find(allocation.begin); known != shared.exported.end()) {
    name = known->second;
    return CUDA_SUCCESS;
  }
  const auto place = Arena::instance().placeOf(allocation.begin);
  if (!place) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool ofPool = allocation.pool != nullptr;
  name = {ofPool ? ExportedMemory::kPoolMagic : ExportedMemory::kMagic,
          allocation.device->index,
          place->offset,
          allocation.size,
          {}};
  if (!offerFile(place->file, name.file)) return CUDA_ERROR_OUT_OF_MEMORY;
  shared.exported.emplace(allocation.begin, name);
  return CUDA_SUCCESS;
}

bool sharesMemory() {
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  return !shared.exported.empty() || !shared.imported.empty();
}

void endExport(std::uint64_t address) {
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (const auto ended = shared.exported.extract(address)) withdrawFile(ended.mapped().file);
}

CUresult importMemory(Context* context, std::shared_ptr<Pool> pool, const ExportedMemory& name,
                      std::uint64_t& address) {
  if (name.size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (offeredHere(name.file)) return CUDA_ERROR_INVALID_CONTEXT;
  Device* device = deviceWithIndex(name.device);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (pool != nullptr && &pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  const void* owner = pool != nullptr ? static_cast<const void*>(pool.get()) : context;
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  const auto known = std::ranges::find_if(shared.imported, [&](const auto& entry) {
    return entry.second.owner == owner && entry.second.key == name.file.key;
  });
  if (known != shared.imported.end()) {
    ++known->second.references;
    return address = known->first, CUDA_SUCCESS;
  }
  const int file = fetchFile(name.file);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t bytes = 0;
  const std::uint64_t mapped = mapFile(file, name, bytes);
  if (mapped == 0) return CUDA_ERROR_MAP_FAILED;
  address = mapped + name.offset;
  shared.imported.emplace(address, Import{owner, name.file.key, mapped, bytes, 1});
  Allocation allocation;
  allocation.begin = address;
  allocation.size = name.size;
  allocation.kind = MemoryKind::imported;
  allocation.context = context;
  allocation.device = device;
  allocation.pool = std::move(pool);
  Allocations::all().add(std::move(allocation));
  return CUDA_SUCCESS;
}

bool dropImport(std::uint64_t address) {
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  const auto found = shared.imported.find(address);
  if (found == shared.imported.end() || --found->second.references > 0) return false;
  found->second.owner = nullptr;  // a later import maps it anew
  return true;
}

void unmapImported(std::uint64_t address) {
  Shared& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (const auto ended = shared.imported.extract(address))
    giveBackReserved(ended.mapped().mapped, ended.mapped().bytes);
}

}  // namespace simulator
