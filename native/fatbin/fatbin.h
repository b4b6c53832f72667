// Parser of nvcc's fat binaries: a header, then entries of PTX or machine code, plain or
// compressed. Every length is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace fatbin {

inline constexpr std::uint64_t kMostBytes =
    std::uint64_t{4} << 30;  ///< maximum size of an image; a larger size means a damaged header

struct Header {
  std::uint32_t magic;
  std::uint16_t version, headerSize;
  std::uint64_t size;  ///< bytes after the header
};

struct Entry {
  std::uint16_t kind, version;
  std::uint32_t headerSize;
  std::uint64_t payloadSize;
  std::uint32_t compressedSize, optionsOffset;
  std::uint16_t minor, major;
  std::uint32_t arch, nameOffset, nameSize;
  std::uint64_t flags, reserved, uncompressedSize;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);

inline constexpr std::uint16_t kPtx = 1, kElf = 2;  // Entry::kind
inline constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000,
                               kFamily = 0x200000;  // Entry::flags
inline constexpr std::uint64_t kOtherCompression =
    0x5000;  ///< compression of other nvcc versions; not supported

/// `header`: the entry's whole header, which begins with Entry.
using Visit = std::function<void(const Entry&, std::span<const std::byte> header,
                                 std::span<const std::byte> payload)>;

/// Calls visit for each entry of the fat binary at the start of `image`. False if a length exceeds
/// it.
bool eachEntry(std::span<const std::byte> image, const Visit& visit);

/// Whether an entry's offsets are inside its header, and its compression flags are consistent.
bool wellFormed(const Entry& entry, std::span<const std::byte> header);

/// The decompressed content of an entry. Empty if it does not match the size in the header, or
/// exceeds `most` bytes.
std::optional<std::string> contentOf(const Entry& entry, std::span<const std::byte> payload,
                                     std::uint64_t most = kMostBytes);

}  // namespace fatbin
