#include "native/worker/session/swap.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "native/worker/driver/driver_start.h"
#include "native/worker/reports/memory_size.h"
#include "native/worker/session/in_context.h"
#include "native/worker/session/memory_file.h"

namespace worker {

namespace {

CUmemAccessDesc accessOf(const MovablePiece& piece, CUmemAccess_flags flags) {
  return {.location = piece.properties.location, .flags = flags};
}

/// Maps a piece for a copy, where the program has no mapping that can be read and written.
class CopyPlace {
 public:
  CopyPlace(const Driver& driver, const MovablePiece& piece) : driver_(driver), piece_(piece) {
    for (const MovablePiece::Mapping& mapping : piece.mappings) {
      if (mapping.access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && mapping.bytes == piece.bytes)
        address_ = mapping.begin;
    }
    if (address_ == 0) status_ = map();
  }
  ~CopyPlace() {
    if (mapped_) driver_.cuMemUnmap(address_, piece_.bytes);
    if (reserved_) driver_.cuMemAddressFree(address_, piece_.bytes);
  }
  CopyPlace(const CopyPlace&) = delete;
  CopyPlace& operator=(const CopyPlace&) = delete;

  CUresult status() const { return status_; }
  CUdeviceptr address() const { return address_; }
  /// Whether a copy must have ended before this object does.
  bool isOwn() const { return reserved_; }

 private:
  CUresult map() {
    CUresult status = driver_.cuMemAddressReserve(&address_, piece_.bytes, 0, 0, 0);
    if (status != CUDA_SUCCESS) return status;
    reserved_ = true;
    status = driver_.cuMemMap(address_, piece_.bytes, 0, *piece_.handle, 0);
    if (status != CUDA_SUCCESS) return status;
    mapped_ = true;
    const CUmemAccessDesc access = accessOf(piece_, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return driver_.cuMemSetAccess(address_, piece_.bytes, &access, 1);
  }

  const Driver& driver_;
  const MovablePiece& piece_;
  CUdeviceptr address_ = 0;
  CUresult status_ = CUDA_SUCCESS;
  bool reserved_ = false, mapped_ = false;
};

}  // namespace

Swap::~Swap() {
  if (arena_ != nullptr) munmap(arena_, arenaBytes_);
}

std::string Swap::refusal() const {
  if (out_) return {};
  if (!forbidden_.empty() && memory_.holdsMemory()) return forbidden_;
  return memory_.isShared() ? "it shares GPU memory with other processes" : std::string();
}

std::vector<MovablePiece> Swap::pieces() const {
  return context_() == nullptr ? std::vector<MovablePiece>() : memory_.pieces();
}

std::uint64_t Swap::bytes() const {
  std::uint64_t bytes = 0;
  if (!out_)
    for (const MovablePiece& piece : pieces()) bytes += piece.bytes;
  return bytes;
}

std::string Swap::failed(const char* what, CUresult status) const {
  return std::string("its GPU memory cannot be ") + what + ": " + nameOf(memory_.below(), status);
}

std::string Swap::leave(OwnedFile arena) {
  if (out_) return {};
  parts_.clear();
  std::uint64_t bytes = 0;
  for (MovablePiece& piece : pieces()) {
    parts_.push_back({.piece = std::move(piece), .offset = bytes});
    bytes += parts_.back().piece.bytes;
  }
  if (parts_.empty()) return {};
  CUcontext const context = context_();
  if (std::string sentence = prepare(std::move(arena), bytes, context); !sentence.empty())
    return sentence;
  const InContext current(memory_.below(), context);
  if (const CUresult status = copyAll(true); status != CUDA_SUCCESS) return failed("read", status);
  unmapAll();
  out_ = true;
  return {};
}

/// After a failure nothing of it is on the GPU, and the arena has all of it.
std::string Swap::enter() {
  if (!out_) return {};
  if (makeRoom() != CUDA_SUCCESS) {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.piece.bytes;
    return "the GPU has no room for the " + formatMemorySize(bytes) + " of its memory";
  }
  const InContext current(memory_.below(), context_());
  CUresult status = mapAll();
  if (status == CUDA_SUCCESS) status = copyAll(false);
  if (status != CUDA_SUCCESS) return unmapAll(), failed("brought back", status);
  out_ = false;
  return {};
}

std::string Swap::drop() {
  if (out_) return "its GPU memory is in the arena";
  if (arena_ == nullptr) return {};
  if (registered_ != nullptr) {
    const InContext current(memory_.below(), registered_);
    memory_.below().cuMemHostUnregister(arena_);
    registered_ = nullptr;
  }
  munmap(arena_, arenaBytes_);
  arena_ = nullptr;
  return {};
}

void Swap::contextEnded(CUcontext context) {
  if (registered_ == context) registered_ = nullptr;
}

/// Takes a new arena, if one is given, and registers it.
std::string Swap::prepare(OwnedFile arena, std::uint64_t bytes, CUcontext context) {
  if (arena.get() >= 0) {
    drop();
    if (!take(std::move(arena))) return "its arena cannot be mapped";
  }
  if (arena_ == nullptr || arenaBytes_ < bytes)
    return "its arena is smaller than its memory of " + formatMemorySize(bytes);
  if (registered_ != nullptr) return {};
  const InContext current(memory_.below(), context);
  const CUresult status =
      memory_.below().cuMemHostRegister_v2(arena_, arenaBytes_, CU_MEMHOSTREGISTER_PORTABLE);
  if (status != CUDA_SUCCESS) return failed("copied to host memory", status);
  registered_ = context;
  return {};
}

bool Swap::take(OwnedFile arena) {
  const std::uint64_t bytes = sealedSize(arena.get(), F_SEAL_SHRINK);
  void* const at = bytes == 0
                       ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.get(), 0);
  if (at == MAP_FAILED) return false;
  arena_ = static_cast<std::byte*>(at);
  arenaBytes_ = bytes;
  return true;
}

CUresult Swap::copy(const Part& part, bool out) const {
  const Driver& driver = memory_.below();
  const CopyPlace place(driver, part.piece);
  if (place.status() != CUDA_SUCCESS) return place.status();
  std::byte* const host = arena_ + part.offset;
  const CUresult status =
      out ? driver.cuMemcpyDtoHAsync_v2(host, place.address(), part.piece.bytes, nullptr)
          : driver.cuMemcpyHtoDAsync_v2(place.address(), host, part.piece.bytes, nullptr);
  return status == CUDA_SUCCESS && place.isOwn() ? driver.cuCtxSynchronize() : status;
}

/// Waits for the copies also after a failure, because the driver ends a context whose memory is
/// unmapped under a copy.
CUresult Swap::copyAll(bool out) const {
  CUresult status = CUDA_SUCCESS;
  for (const Part& part : parts_) {
    status = copy(part, out);
    if (status != CUDA_SUCCESS) break;
  }
  const CUresult waited = memory_.below().cuCtxSynchronize();
  return status != CUDA_SUCCESS ? status : waited;
}

/// Room for all or for nothing.
CUresult Swap::makeRoom() {
  const Driver& driver = memory_.below();
  for (const Part& part : parts_) {
    const MovablePiece& piece = part.piece;
    const CUresult status = driver.cuMemCreate(piece.handle, piece.bytes, &piece.properties, 0);
    if (status == CUDA_SUCCESS) continue;
    for (const Part& made : parts_)
      if (*made.piece.handle != 0) driver.cuMemRelease(std::exchange(*made.piece.handle, 0));
    return status;
  }
  return CUDA_SUCCESS;
}

CUresult Swap::mapAll() {
  const Driver& driver = memory_.below();
  for (const Part& part : parts_) {
    for (const auto& [begin, bytes, flags] : part.piece.mappings) {
      CUresult status = driver.cuMemMap(begin, bytes, 0, *part.piece.handle, 0);
      const CUmemAccessDesc access = accessOf(part.piece, flags);
      if (status == CUDA_SUCCESS && flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        status = driver.cuMemSetAccess(begin, bytes, &access, 1);
      if (status != CUDA_SUCCESS) return status;
    }
  }
  return CUDA_SUCCESS;
}

/// Frees the memory. The addresses stay reserved, so the driver refuses only what is not mapped.
void Swap::unmapAll() {
  const Driver& driver = memory_.below();
  for (const Part& part : parts_) {
    for (const MovablePiece::Mapping& mapping : part.piece.mappings)
      driver.cuMemUnmap(mapping.begin, mapping.bytes);
    driver.cuMemRelease(std::exchange(*part.piece.handle, 0));
  }
}

}  // namespace worker
