#include "native/fatbin/fatbin.h"

#include <lz4.h>
#include <zstd.h>

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
  if (header.headerSize < sizeof(Header) || header.size > kMostBytes || header.headerSize > image.size()) return false;
  std::span<const std::byte> rest = image.subspan(header.headerSize);
  if (header.size > rest.size()) return false;
  rest = rest.first(header.size);
  while (rest.size() >= sizeof(Entry)) {
    const auto entry = load<Entry>(rest.data());
    if (entry.headerSize < sizeof(Entry) || entry.headerSize > rest.size() || entry.payloadSize > rest.size() - entry.headerSize)
      return false;
    visit(entry, rest.subspan(entry.headerSize, entry.payloadSize));
    rest = rest.subspan(entry.headerSize + entry.payloadSize);
  }
  return true;
}

std::optional<std::string> contentOf(const Entry& entry, std::span<const std::byte> payload) {
  const auto* bytes = reinterpret_cast<const char*>(payload.data());
  if ((entry.flags & (kLz4 | kZstd)) == 0) return std::string(bytes, payload.size());
  if (entry.compressedSize > payload.size() || entry.uncompressedSize > kMostBytes) return std::nullopt;
  std::string content(entry.uncompressedSize, 0);
  if ((entry.flags & kLz4) != 0) {
    if (content.size() > LZ4_MAX_INPUT_SIZE) return std::nullopt;
    const int length = LZ4_decompress_safe(bytes, content.data(), static_cast<int>(entry.compressedSize), static_cast<int>(content.size()));
    if (length != static_cast<int>(content.size())) return std::nullopt;
  } else if (ZSTD_decompress(content.data(), content.size(), bytes, entry.compressedSize) != content.size()) {
    return std::nullopt;
  }
  return content;
}

}  // namespace fatbin
