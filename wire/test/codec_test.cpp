// Encoder and decoder: a decoder returns what was encoded, and refuses a frame of any other length
// without reading outside of it.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "wire/decoder.h"
#include "wire/encoder.h"

namespace wire {
namespace {

struct Odd {
  std::uint8_t bytes[3];
};

constexpr std::size_t kLimit = 64;
const std::string kName = "kernel";
const std::uint32_t kNumbers[] = {1, 2, 3};

void encodeEverything(Encoder& encoder) {
  encoder.put<std::uint8_t>(7);
  encoder.put(Odd{{1, 2, 3}});
  encoder.put<std::uint64_t>(0x0123'4567'89ab'cdef);
  encoder.putBytes(kName.c_str(), kName.size() + 1);
  encoder.putBytes(kNumbers, sizeof(kNumbers));
  encoder.putBytes(nullptr, 0);
  if (std::byte* space = encoder.putSpace(5)) std::memset(space, 9, 5);
}

bool decodeEverything(Decoder& decoder) {
  bool same = decoder.get<std::uint8_t>() == 7;
  const Odd odd = decoder.get<Odd>();
  same = same && odd.bytes[0] == 1 && odd.bytes[2] == 3;
  same = decoder.get<std::uint64_t>() == 0x0123'4567'89ab'cdef && same;
  const char* name = decoder.getString(kLimit);
  same = same && name != nullptr && name == kName;
  const auto numbers = decoder.getArray<std::uint32_t>(kLimit);
  same = same && numbers.size() == 3 && numbers[0] == 1 && numbers[2] == 3;
  same = decoder.getBytes(kLimit).empty() && same;
  const auto space = decoder.getBytes(kLimit);
  return same && space.size() == 5 && space[4] == std::byte{9};
}

// On the heap and of exactly this size, so that AddressSanitizer sees a read beyond the end.
std::unique_ptr<std::byte[]> exactCopy(const std::byte* data, std::size_t bytes) {
  auto copy = std::make_unique<std::byte[]>(bytes);
  if (bytes != 0) std::memcpy(copy.get(), data, bytes);
  return copy;
}

std::vector<std::byte> encoded() {
  std::vector<std::byte> room(1024);
  Encoder encoder(room.data(), room.size());
  encodeEverything(encoder);
  CHECK(!encoder.failed());
  CHECK(encoder.size() % 8 == 0);
  room.resize(encoder.size());
  return room;
}

TEST_CASE("a decoder returns what was encoded") {
  const auto frame = encoded();
  Decoder decoder(frame.data(), frame.size());
  CHECK(decodeEverything(decoder));
  CHECK(decoder.finished());
  CHECK(decoder.remaining() == 0);
}

TEST_CASE("a frame that is cut at any byte is refused") {
  const auto frame = encoded();
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    const auto copy = exactCopy(frame.data(), cut);
    Decoder decoder(copy.get(), cut);
    CHECK(!decodeEverything(decoder));
    CHECK(!decoder.ok());
    CHECK(!decoder.finished());
  }
}

TEST_CASE("a frame with bytes left over is not finished") {
  auto frame = encoded();
  const std::size_t length = frame.size();
  for (std::size_t more = 1; more <= 16; ++more) {
    frame.resize(length + more);
    Decoder decoder(frame.data(), frame.size());
    CHECK(decodeEverything(decoder));
    CHECK(decoder.ok());
    CHECK(!decoder.finished());
  }
}

TEST_CASE("any byte of a frame may have any value") {
  const auto frame = encoded();
  for (std::size_t at = 0; at < frame.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      const auto copy = exactCopy(frame.data(), frame.size());
      copy[at] = static_cast<std::byte>(value);
      Decoder decoder(copy.get(), frame.size());
      decodeEverything(decoder);
      CHECK(decoder.remaining() <= frame.size());
    }
  }
}

TEST_CASE("an encoder without room fails and stays failed") {
  const std::size_t length = encoded().size();
  for (std::size_t room = 0; room < length; ++room) {
    const auto space = std::make_unique<std::byte[]>(room);
    Encoder encoder(space.get(), room);
    encodeEverything(encoder);
    CHECK(encoder.failed());
    CHECK(encoder.size() <= room);
    encoder.put<std::uint8_t>(1);
    CHECK(encoder.failed());
  }
  CHECK(Encoder().failed());
}

TEST_CASE("a claimed length beyond the limit or the frame is refused") {
  std::byte room[256];
  for (const std::uint64_t claimed : {std::uint64_t{9}, std::uint64_t{1} << 32, ~std::uint64_t{0},
                                      ~std::uint64_t{0} - 7, std::uint64_t{1} << 63}) {
    Encoder encoder(room, sizeof(room));
    encoder.put(claimed);
    encoder.put<std::uint64_t>(0);
    Decoder limited(room, encoder.size());
    CHECK(limited.getBytes(8).empty());
    CHECK(!limited.ok());
    Decoder unlimited(room, encoder.size());
    CHECK(unlimited.getBytes(~std::size_t{0}).empty());
    CHECK(!unlimited.ok());
    Decoder array(room, encoder.size());
    CHECK(array.getArray<std::uint64_t>(2).empty());
    CHECK(!array.ok());
  }
}

TEST_CASE("an array has whole elements and a string ends with a zero") {
  std::byte room[64];
  Encoder encoder(room, sizeof(room));
  encoder.putBytes("abc", 3);
  Decoder array(room, encoder.size());
  CHECK(array.getArray<std::uint16_t>(8).empty());
  CHECK(!array.ok());
  Decoder string(room, encoder.size());
  CHECK(string.getString(8) == nullptr);
  CHECK(!string.ok());
  Encoder empty(room, sizeof(room));
  empty.putBytes("", 0);
  Decoder none(room, empty.size());
  CHECK(none.getString(8) == nullptr);
  CHECK(!none.ok());
}

TEST_CASE("a decoder that failed stays failed") {
  const std::uint64_t number = 5;
  Decoder decoder(reinterpret_cast<const std::byte*>(&number), sizeof(number));
  struct Large {
    std::uint64_t words[2];
  };
  CHECK(decoder.get<Large>().words[0] == 0);
  CHECK(decoder.get<std::uint64_t>() == 0);
  CHECK(!decoder.ok());
  CHECK(decoder.remaining() == 0);
  CHECK(!Decoder().ok());
  CHECK(!Decoder().finished());
}

}  // namespace
}  // namespace wire
