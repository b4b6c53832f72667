// A frame of arbitrary bytes, read by an arbitrary sequence of the decoder's functions: no access
// is out of bounds.
#include "wire/decoder.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "test/fuzz/require.h"

namespace {

struct Large {
  std::uint64_t words[5];
};

// Reads every byte, so that AddressSanitizer checks each.
template <class T>
std::size_t touch(std::span<const T> items, std::size_t limit) {
  REQUIRE(items.size() <= limit);
  volatile std::uint8_t sum = 0;
  for (const std::byte byte : std::as_bytes(items)) sum = sum + static_cast<std::uint8_t>(byte);
  return items.size();
}

void step(wire::Decoder& decoder, int choice, std::size_t limit) {
  switch (choice) {
    case 0: decoder.get<std::uint8_t>(); break;
    case 1: decoder.get<std::uint64_t>(); break;
    case 2: decoder.get<Large>(); break;
    case 3: touch(decoder.getBytes(limit), limit); break;
    case 4: touch(decoder.getArray<std::uint32_t>(limit / 4), limit / 4); break;
    case 5: touch(decoder.getArray<Large>(limit), limit); break;
    default:
      if (const char* text = decoder.getString(limit)) REQUIRE(std::strlen(text) < limit);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  std::vector<std::uint8_t> steps =
      input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(0, 24));
  const auto limit = input.ConsumeIntegral<std::uint32_t>();
  const std::vector<std::uint8_t> frame = input.ConsumeRemainingBytes<std::uint8_t>();
  // A vector may have spare capacity. Only an allocation of the exact size has a checked end.
  std::unique_ptr<std::byte[]> exact(new std::byte[frame.size()]);
  if (!frame.empty()) std::memcpy(exact.get(), frame.data(), frame.size());
  wire::Decoder decoder(exact.get(), frame.size());
  for (const std::uint8_t choice : steps) {
    const std::size_t before = decoder.remaining();
    step(decoder, choice % 7, limit);
    REQUIRE(decoder.remaining() <= before);
    REQUIRE(decoder.ok() || (decoder.remaining() == 0 && decoder.get<std::uint64_t>() == 0));
  }
  return 0;
}
