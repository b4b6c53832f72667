#include "native/worker/session/swap.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "native/worker/driver/driver_start.h"
#include "native/worker/memory/device_handle.h"
#include "native/worker/reports/memory_size.h"
#include "native/worker/session/in_context.h"
#include "native/worker/session/memory_file.h"
#include "wire/fault.h"

namespace worker {

namespace {

/// Each takes up to 50 us to end, and as much to be made again (A100).
constexpr std::size_t kMostMappings = 100'000;

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
    status = mapHandle(driver_, address_, piece_.bytes, *piece_.handle, piece_.properties.location);
    mapped_ = status == CUDA_SUCCESS;
    return status;
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

std::string Swap::whyStays() const {
  if (out_) return {};
  if (!forbidden_.empty()) return memory_.holdsMemory() ? forbidden_ : std::string();
  const std::vector<MovablePiece> pieces = memory_.pieces();
  if (pieces.empty()) return {};
  std::size_t mappings = 0;
  for (const MovablePiece& piece : pieces) mappings += piece.mappings.size();
  if (mappings > kMostMappings)
    return "it has more than " + std::to_string(kMostMappings) + " mappings of GPU memory";
  return context_() == nullptr ? "it has no context in which its GPU memory can be read"
                               : std::string();
}

std::uint64_t Swap::bytes() const {
  std::uint64_t bytes = 0;
  if (!out_)
    for (const MovablePiece& piece : memory_.pieces()) bytes += piece.bytes;
  return bytes;
}

std::string Swap::failed(const char* what, CUresult status) const {
  return std::string("its GPU memory cannot be ") + what + ": " + nameOf(memory_.below(), status);
}

std::string Swap::moveOut(OwnedFile arena) {
  if (out_) return {};
  parts_.clear();
  std::uint64_t bytes = 0;
  for (MovablePiece& piece : memory_.pieces()) {
    parts_.push_back({.piece = std::move(piece), .offset = bytes});
    bytes += parts_.back().piece.bytes;
  }
  if (parts_.empty()) return {};
  CUcontext const context = context_();
  if (std::string sentence = prepare(std::move(arena), bytes, context); !sentence.empty())
    return sentence;
  const InContext current(memory_.below(), registered_);
  if (const CUresult status = copyAll(true); status != CUDA_SUCCESS) return failed("read", status);
  unmapAll();
  out_ = true;
  return {};
}

std::string Swap::moveIn() {
  if (!out_) return {};
  CUresult status = makeRoom();
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.piece.bytes;
    return "the GPU has no room for the " + formatMemorySize(bytes) + " of its memory";
  }
  const InContext current(memory_.below(), registered_);
  if (status == CUDA_SUCCESS) status = mapAll();
  if (status == CUDA_SUCCESS) status = copyAll(false);
  if (status != CUDA_SUCCESS && !wire::isFault(status)) {
    unmapAll();
    return failed("brought back", status);
  }
  out_ = false;
  return {};
}

std::string Swap::drop() {
  if (out_) return "its GPU memory is in the arena";
  if (arena_ == nullptr) return {};
  if (registered_ != nullptr) {
    const InContext current(memory_.below(), registered_);
    const CUresult status = memory_.below().cuMemHostUnregister(arena_);
    if (status != CUDA_SUCCESS && !wire::isFault(status)) return failed("parted from it", status);
    memory_.below().cuStreamDestroy_v2(std::exchange(stream_, nullptr));
    registered_ = nullptr;
  }
  munmap(arena_, arenaBytes_);
  arena_ = nullptr;
  return {};
}

void Swap::contextEnded(CUcontext context) {
  if (registered_ != context) return;
  registered_ = nullptr;
  stream_ = nullptr;
}

/// Takes a new arena, if one is given, and registers it.
std::string Swap::prepare(OwnedFile arena, std::uint64_t bytes, CUcontext context) {
  if (arena.get() >= 0) {
    if (std::string sentence = drop(); !sentence.empty()) return sentence;
    if (!take(std::move(arena))) return "its arena cannot be mapped";
  }
  if (arena_ == nullptr || arenaBytes_ < bytes)
    return "its arena is smaller than its memory of " + formatMemorySize(bytes);
  const CUresult status = registered_ == nullptr ? registerArena(context) : CUDA_SUCCESS;
  return status == CUDA_SUCCESS ? std::string() : failed("copied to host memory", status);
}

CUresult Swap::registerArena(CUcontext context) {
  const Driver& driver = memory_.below();
  const InContext current(driver, context);
  CUresult status = driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  if (status != CUDA_SUCCESS) return status;
  status = driver.cuMemHostRegister_v2(arena_, arenaBytes_, CU_MEMHOSTREGISTER_PORTABLE);
  if (status == CUDA_SUCCESS)
    registered_ = context;
  else
    driver.cuStreamDestroy_v2(std::exchange(stream_, nullptr));
  return status;
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
      out ? driver.cuMemcpyDtoHAsync_v2(host, place.address(), part.piece.bytes, stream_)
          : driver.cuMemcpyHtoDAsync_v2(place.address(), host, part.piece.bytes, stream_);
  return status == CUDA_SUCCESS && place.isOwn() ? driver.cuStreamSynchronize(stream_) : status;
}

/// Waits for the copies also after a failure, because the driver ends a context whose memory is
/// unmapped under a copy.
CUresult Swap::copyAll(bool out) const {
  CUresult status = CUDA_SUCCESS;
  for (const Part& part : parts_) {
    status = copy(part, out);
    if (status != CUDA_SUCCESS) break;
  }
  const CUresult waited = memory_.below().cuStreamSynchronize(stream_);
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
      const CUmemAccessDesc access{.location = part.piece.properties.location, .flags = flags};
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
