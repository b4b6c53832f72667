// Fat binaries as nvcc writes them: a header, then entries of PTX or machine code, plain or compressed. Every length is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace fatbin {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;  ///< no image is larger; a header that says so is damaged

struct Header {
  std::uint32_t magic;
  std::uint16_t version, headerSize;
  std::uint64_t size;  ///< of what follows the header
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

inline constexpr std::uint16_t kPtx = 1, kElf = 2;                                                           // Entry::kind
inline constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000, kFamily = 0x200000;  // Entry::flags

using Visit = std::function<void(const Entry&, std::span<const std::byte> payload)>;

/// Calls visit for each entry of the fat binary at the start of `image`; false when a length leads out of it.
bool eachEntry(std::span<const std::byte> image, const Visit& visit);

/// What an entry holds, decompressed; nothing when it does not decompress to what its header says.
std::optional<std::string> contentOf(const Entry& entry, std::span<const std::byte> payload);

}  // namespace fatbin
