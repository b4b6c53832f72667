#include "native/worker/session/swap.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <iterator>

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

/// Pieces of at least `bytes` together, or all: as little more as the pieces allow.
std::vector<MovablePiece> choose(std::vector<MovablePiece> pieces, std::uint64_t bytes) {
  std::ranges::sort(pieces, std::greater(), &MovablePiece::bytes);
  std::vector<MovablePiece> chosen, larger;
  for (MovablePiece& piece : pieces) {
    const bool fits = piece.bytes <= bytes;
    if (fits) bytes -= piece.bytes;
    (fits ? chosen : larger).push_back(std::move(piece));
  }
  if (bytes > 0 && !larger.empty()) chosen.push_back(std::move(larger.back()));
  return chosen;
}

std::uint64_t sum(std::span<const MovablePiece> pieces) {
  std::uint64_t bytes = 0;
  for (const MovablePiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

}  // namespace

Swap::~Swap() {
  for (const Segment& segment : arena_) munmap(segment.at, segment.bytes);
}

std::string Swap::whyStays() const {
  if (!forbidden_.empty()) return memory_.holdsMemory() ? forbidden_ : std::string();
  const std::vector<MovablePiece> pieces = present();
  if (pieces.empty()) return {};
  std::size_t mappings = 0;
  for (const MovablePiece& piece : pieces) mappings += piece.mappings.size();
  if (mappings > kMostMappings)
    return "it has more than " + std::to_string(kMostMappings) + " mappings of GPU memory";
  return context_() == nullptr ? "it has no context in which its GPU memory can be read"
                               : std::string();
}

std::uint64_t Swap::bytes() const { return sum(present()); }

std::uint64_t Swap::outBytes() const {
  return out_.empty() ? 0 : out_.back().offset + out_.back().piece.bytes;
}

/// The pieces that are on the GPU.
std::vector<MovablePiece> Swap::present() const {
  std::vector<MovablePiece> pieces = memory_.pieces();
  std::erase_if(pieces, [](const MovablePiece& piece) { return *piece.handle == 0; });
  return pieces;
}

std::string Swap::failed(const char* what, CUresult status) const {
  return std::string("its GPU memory cannot be ") + what + ": " + nameOf(memory_.below(), status);
}

std::uint64_t Swap::arenaBytes() const {
  std::uint64_t bytes = 0;
  for (const Segment& segment : arena_) bytes += segment.bytes;
  return bytes;
}

std::uint64_t Swap::lacking(std::uint64_t bytes) const {
  const std::uint64_t needed = outBytes() + sum(choose(present(), bytes));
  return needed - std::min(needed, arenaBytes());
}

std::string Swap::moveOut(std::uint64_t bytes, OwnedFile file) {
  std::vector<Part> parts;
  std::uint64_t end = outBytes();
  for (MovablePiece& piece : choose(present(), bytes)) {
    parts.push_back({.piece = std::move(piece), .offset = end});
    end += parts.back().piece.bytes;
  }
  if (parts.empty()) return {};
  if (std::string sentence = prepare(std::move(file), end); !sentence.empty()) return sentence;
  const InContext current(memory_.below(), registered_);
  if (const CUresult status = copyAll(parts, true); status != CUDA_SUCCESS)
    return failed("read", status);
  unmapAll(parts);
  std::ranges::move(parts, std::back_inserter(out_));
  return {};
}

/// What left last comes back first, so the arena has no gaps.
std::string Swap::moveIn(std::uint64_t bytes) {
  std::uint64_t needed = 0;
  std::size_t stay = out_.size();
  while (stay > 0 && needed + out_[stay - 1].piece.bytes <= bytes)
    needed += out_[--stay].piece.bytes;
  const Parts parts = std::span(out_).subspan(stay);
  if (parts.empty()) return {};
  CUresult status = makeRoom(parts);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    return "the GPU has no room for " + formatMemorySize(needed) + " of its memory";
  const InContext current(memory_.below(), registered_);
  if (status == CUDA_SUCCESS) status = mapAll(parts);
  if (status == CUDA_SUCCESS) status = copyAll(parts, false);
  if (status != CUDA_SUCCESS && !wire::isFault(status)) {
    unmapAll(parts);
    return failed("brought back", status);
  }
  out_.resize(stay);
  return {};
}

std::string Swap::drop() {
  if (!out_.empty()) return "its GPU memory is in the arena";
  if (registered_ != nullptr) {
    const Driver& driver = memory_.below();
    const InContext current(driver, registered_);
    for (Segment& segment : arena_) {
      if (!segment.registered) continue;
      const CUresult status = driver.cuMemHostUnregister(segment.at);
      if (status != CUDA_SUCCESS && !wire::isFault(status)) return failed("parted from it", status);
      segment.registered = false;
    }
    driver.cuStreamDestroy_v2(stream_);
    contextEnded(registered_);
  }
  for (const Segment& segment : arena_) munmap(segment.at, segment.bytes);
  arena_.clear();
  return {};
}

void Swap::contextEnded(CUcontext context) {
  if (registered_ != context) return;
  registered_ = nullptr;
  stream_ = nullptr;
  for (Segment& segment : arena_) segment.registered = false;
}

/// Adds a file to the arena, if one is given, and registers what is not yet.
/// `bytes`: the size that the arena must have.
std::string Swap::prepare(OwnedFile file, std::uint64_t bytes) {
  if (file.get() >= 0 && !map(file)) return "its arena cannot be mapped";
  if (arenaBytes() < bytes) return "its arena is smaller than " + formatMemorySize(bytes);
  const CUresult status = registerArena();
  return status == CUDA_SUCCESS ? std::string() : failed("copied to host memory", status);
}

CUresult Swap::registerArena() {
  const Driver& driver = memory_.below();
  CUcontext const context = registered_ != nullptr ? registered_ : context_();
  const InContext current(driver, context);
  if (registered_ == nullptr) {
    const CUresult status = driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    if (status != CUDA_SUCCESS) return status;
    registered_ = context;
  }
  for (Segment& segment : arena_) {
    if (segment.registered) continue;
    const CUresult status =
        driver.cuMemHostRegister_v2(segment.at, segment.bytes, CU_MEMHOSTREGISTER_PORTABLE);
    if (status != CUDA_SUCCESS) return status;
    segment.registered = true;
  }
  return CUDA_SUCCESS;
}

bool Swap::map(const OwnedFile& file) {
  const std::uint64_t bytes = sealedSize(file.get(), F_SEAL_SHRINK);
  void* const at = bytes == 0
                       ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return false;
  madvise(at, bytes, MADV_HUGEPAGE);  // it has some if the kernel gave them when it was populated
  arena_.push_back({.at = static_cast<std::byte*>(at), .bytes = bytes});
  return true;
}

CUresult Swap::copy(const Part& part, bool out) const {
  const CopyPlace place(memory_.below(), part.piece);
  if (place.status() != CUDA_SUCCESS) return place.status();
  const CUresult status = copyAt(place.address(), part.offset, part.piece.bytes, out);
  const bool waits = status == CUDA_SUCCESS && place.isOwn();
  return waits ? memory_.below().cuStreamSynchronize(stream_) : status;
}

/// A copy must not reach from one registration into another.
CUresult Swap::copyAt(CUdeviceptr address, std::uint64_t offset, std::uint64_t bytes,
                      bool out) const {
  const Driver& driver = memory_.below();
  for (const Segment& segment : arena_) {
    if (bytes == 0) break;
    if (offset >= segment.bytes) {
      offset -= segment.bytes;
      continue;
    }
    const std::uint64_t here = std::min(bytes, segment.bytes - offset);
    std::byte* const host = segment.at + std::exchange(offset, 0);
    const CUresult status = out ? driver.cuMemcpyDtoHAsync_v2(host, address, here, stream_)
                                : driver.cuMemcpyHtoDAsync_v2(address, host, here, stream_);
    if (status != CUDA_SUCCESS) return status;
    address += here;
    bytes -= here;
  }
  return CUDA_SUCCESS;
}

/// Waits for the copies also after a failure, because the driver ends a context whose memory is
/// unmapped under a copy.
CUresult Swap::copyAll(Parts parts, bool out) const {
  CUresult status = CUDA_SUCCESS;
  for (const Part& part : parts) {
    status = copy(part, out);
    if (status != CUDA_SUCCESS) break;
  }
  const CUresult waited = memory_.below().cuStreamSynchronize(stream_);
  return status != CUDA_SUCCESS ? status : waited;
}

/// Room for all or for nothing.
CUresult Swap::makeRoom(Parts parts) {
  const Driver& driver = memory_.below();
  for (const Part& part : parts) {
    const MovablePiece& piece = part.piece;
    const CUresult status = driver.cuMemCreate(piece.handle, piece.bytes, &piece.properties, 0);
    if (status == CUDA_SUCCESS) continue;
    for (const Part& made : parts)
      if (*made.piece.handle != 0) driver.cuMemRelease(std::exchange(*made.piece.handle, 0));
    return status;
  }
  return CUDA_SUCCESS;
}

CUresult Swap::mapAll(Parts parts) {
  const Driver& driver = memory_.below();
  for (const Part& part : parts) {
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
void Swap::unmapAll(Parts parts) {
  const Driver& driver = memory_.below();
  for (const Part& part : parts) {
    for (const MovablePiece::Mapping& mapping : part.piece.mappings)
      driver.cuMemUnmap(mapping.begin, mapping.bytes);
    driver.cuMemRelease(std::exchange(*part.piece.handle, 0));
  }
}

}  // namespace worker
