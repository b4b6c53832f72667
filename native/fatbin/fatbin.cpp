#include "native/fatbin/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace fatbin {

namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

bool eachEntry(std::span<const std::byte> image, const Visit& visit) {
  if (image.size() < sizeof(Header)) return false;
  const auto header = load<Header>(image.data());
  if (header.headerSize < sizeof(Header) || header.size > kMostBytes ||
      header.headerSize > image.size())
    return false;
  std::span<const std::byte> rest = image.subspan(header.headerSize);
  if (header.size > rest.size()) return false;
  rest = rest.first(header.size);
  while (rest.size() >= sizeof(Entry)) {
    const auto entry = load<Entry>(rest.data());
    if (entry.headerSize < sizeof(Entry) || entry.headerSize > rest.size() ||
        entry.payloadSize > rest.size() - entry.headerSize)
      return false;
    visit(entry, rest.first(entry.headerSize), rest.subspan(entry.headerSize, entry.payloadSize));
    rest = rest.subspan(entry.headerSize + entry.payloadSize);
  }
  return true;
}

bool wellFormed(const Entry& entry, std::span<const std::byte> header) {
  const auto inside = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= header.size() && bytes <= header.size() - offset;
  };
  struct Options {  // compiler options; the text follows
    std::uint32_t offset, bytes;
  };
  if (entry.nameSize > 0 && !inside(entry.nameOffset, entry.nameSize)) return false;
  if (entry.optionsOffset > 0) {
    if (!inside(entry.optionsOffset, sizeof(Options))) return false;
    const auto options = load<Options>(header.data() + entry.optionsOffset);
    if (!inside(options.offset, options.bytes)) return false;
  }
  const bool lz4 = (entry.flags & kLz4) != 0;
  const bool zstd = (entry.flags & kZstd) != 0;
  return !(lz4 && zstd) && (entry.flags & kOtherCompression) == 0 &&
         (entry.compressedSize > 0) == (lz4 || zstd);
}

std::optional<std::string> contentOf(const Entry& entry, std::span<const std::byte> payload,
                                     std::uint64_t most) {
  const auto* bytes = reinterpret_cast<const char*>(payload.data());
  if ((entry.flags & (kLz4 | kZstd)) == 0) {
    if (payload.size() > most) return std::nullopt;
    return std::string(bytes, payload.size());
  }
  if (entry.compressedSize > payload.size() || entry.uncompressedSize > std::min(most, kMostBytes))
    return std::nullopt;
  if ((entry.flags & kLz4) != 0) {
    if (entry.uncompressedSize > LZ4_MAX_INPUT_SIZE || entry.compressedSize > LZ4_MAX_INPUT_SIZE)
      return std::nullopt;
    std::string content(entry.uncompressedSize, 0);
    const int length =
        LZ4_decompress_safe(bytes, content.data(), static_cast<int>(entry.compressedSize),
                            static_cast<int>(content.size()));
    if (length != static_cast<int>(content.size())) return std::nullopt;
    return content;
  }
  // Exactly one frame. Checked before memory is allocated for its content.
  const auto said = ZSTD_getFrameContentSize(bytes, entry.compressedSize);
  if (said != entry.uncompressedSize && said != ZSTD_CONTENTSIZE_UNKNOWN) return std::nullopt;
  if (ZSTD_findFrameCompressedSize(bytes, entry.compressedSize) != entry.compressedSize)
    return std::nullopt;
  std::string content(entry.uncompressedSize, 0);
  if (ZSTD_decompress(content.data(), content.size(), bytes, entry.compressedSize) !=
      content.size())
    return std::nullopt;
  return content;
}

}  // namespace fatbin
