#include "native/worker/memory/program_memory.h"

#include <algorithm>
#include <iterator>

namespace worker {

ProgramMemory::Number ProgramMemory::add(const Memory& memory) {
  memories_.emplace(++last_, memory);
  return last_;
}

ProgramMemory::Memory* ProgramMemory::find(Number number) {
  const auto found = memories_.find(number);
  return found == memories_.end() ? nullptr : &found->second;
}

/// Gives the driver its reference back, if that was the last use.
CUresult ProgramMemory::settle(Number number) {
  const Memory& memory = memories_.at(number);
  if (memory.references > 0 || memory.mappings > 0) return CUDA_SUCCESS;
  const CUresult status = below_.cuMemRelease(memory.handle);
  memories_.erase(number);
  return status;
}

CUresult ProgramMemory::create(Number* number, std::size_t bytes,
                               const CUmemAllocationProp* properties, unsigned long long flags) {
  Memory memory{.bytes = bytes};
  const CUresult status = below_.cuMemCreate(&memory.handle, bytes, properties, flags);
  if (status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(mutex_);
  *number = add(memory);
  return status;
}

CUresult ProgramMemory::release(Number number) {
  const std::lock_guard lock(mutex_);
  Memory* memory = find(number);
  if (memory == nullptr || memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->references;
  return settle(number);
}

CUresult ProgramMemory::retain(Number* number, void* address) {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  const auto after = mappings_.upper_bound(at);
  if (after != mappings_.begin()) {
    const auto& [begin, mapping] = *std::prev(after);
    if (at - begin < mapping.bytes) {
      ++memories_.at(mapping.number).references;
      *number = mapping.number;
      return CUDA_SUCCESS;
    }
  }
  CUmemGenericAllocationHandle handle = 0;
  const CUresult status = below_.cuMemRetainAllocationHandle(&handle, address);
  if (status != CUDA_SUCCESS) return status;
  below_.cuMemRelease(handle);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult ProgramMemory::exportTo(void* file, Number number, CUmemAllocationHandleType type,
                                 unsigned long long flags) {
  const std::lock_guard lock(mutex_);
  Memory* memory = find(number);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = below_.cuMemExportToShareableHandle(file, memory->handle, type, flags);
  if (status == CUDA_SUCCESS) memory->shared = true;
  return status;
}

CUresult ProgramMemory::importFrom(Number* number, void* file, CUmemAllocationHandleType type) {
  Memory memory{.shared = true};
  const CUresult status = below_.cuMemImportFromShareableHandle(&memory.handle, file, type);
  if (status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(mutex_);
  *number = add(memory);
  return status;
}

CUresult ProgramMemory::properties(CUmemAllocationProp* properties, Number number) {
  const std::lock_guard lock(mutex_);
  const Memory* memory = find(number);
  return memory == nullptr
             ? CUDA_ERROR_INVALID_VALUE
             : below_.cuMemGetAllocationPropertiesFromHandle(properties, memory->handle);
}

CUresult ProgramMemory::map(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                            Number number, unsigned long long flags) {
  const std::lock_guard lock(mutex_);
  Memory* memory = find(number);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = below_.cuMemMap(address, bytes, offset, memory->handle, flags);
  if (status != CUDA_SUCCESS) return status;
  mappings_[address] = {.bytes = bytes, .number = number};
  ++memory->mappings;
  return status;
}

CUresult ProgramMemory::unmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const CUresult status = below_.cuMemUnmap(address, bytes);
  if (status != CUDA_SUCCESS) return status;
  auto mapping = mappings_.lower_bound(address);
  while (mapping != mappings_.end() && mapping->first - address < bytes) {
    const Number number = mapping->second.number;
    mapping = mappings_.erase(mapping);
    --memories_.at(number).mappings;
    settle(number);
  }
  return status;
}

/// What is mapped into an array counts for ever, because what is unmapped in stream order is not
/// followed.
CUresult ProgramMemory::mapArrays(CUarrayMapInfo* list, unsigned count, CUstream stream) {
  const std::lock_guard lock(mutex_);
  for (CUarrayMapInfo* info = list; info != list + count; ++info) {
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP) continue;
    Memory* memory = find(info->memHandle.memHandle);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memory->inArray = true;
    info->memHandle.memHandle = memory->handle;
  }
  return below_.cuMemMapArrayAsync(list, count, stream);
}

bool ProgramMemory::isShared() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(memories_, [](const auto& each) { return each.second.shared; });
}

bool ProgramMemory::isEmpty() const {
  const std::lock_guard lock(mutex_);
  return memories_.empty();
}

/// False if it must stay: the driver does not say how it is mapped, or an array may get it.
bool ProgramMemory::describe(MovablePiece& piece) const {
  if (below_.cuMemGetAllocationPropertiesFromHandle(&piece.properties, *piece.handle) !=
          CUDA_SUCCESS ||
      (piece.properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0)
    return false;
  return std::ranges::all_of(piece.mappings, [&](MovablePiece::Mapping& mapping) {
    unsigned long long access = 0;
    const CUresult status =
        below_.cuMemGetAccess(&access, &piece.properties.location, mapping.begin);
    mapping.access = static_cast<CUmemAccess_flags>(access);
    return status == CUDA_SUCCESS;
  });
}

void ProgramMemory::addPieces(std::vector<MovablePiece>& pieces) {
  const std::lock_guard lock(mutex_);
  std::map<Number, std::vector<MovablePiece::Mapping>> mappings;
  for (const auto& [begin, mapping] : mappings_)
    mappings[mapping.number].push_back({.begin = begin, .bytes = mapping.bytes});
  for (auto& [number, memory] : memories_) {
    if (memory.shared || memory.inArray) continue;
    MovablePiece piece{.handle = &memory.handle, .bytes = memory.bytes};
    piece.mappings = std::move(mappings[number]);
    if (describe(piece)) pieces.push_back(std::move(piece));
  }
}

}  // namespace worker
