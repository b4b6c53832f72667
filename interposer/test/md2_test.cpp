// MD2 of RFC 1319, and HMAC of RFC 2104 with it.
#include "interposer/export_tables/md2.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

std::span<const std::uint8_t> bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string hex(const interposer::Md2Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string md2(std::string_view text) { return hex(interposer::md2(bytes(text))); }

}  // namespace

TEST_CASE("the test suite of RFC 1319 gives the digests that it lists") {
  CHECK(md2("") == "8350e5a3e24c153df2275c9f80692773");
  CHECK(md2("a") == "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  CHECK(md2("abc") == "da853b0d3f88d99b30283a69e6ded6bb");
  CHECK(md2("message digest") == "ab4f496bfb2a530b219ff33031fe06b0");
  CHECK(md2("abcdefghijklmnopqrstuvwxyz") == "4e8ddff3650292ab5a4108c3aa47940b");
  CHECK(md2("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
        "da33def2a42df13975352846c30338cd");
  CHECK(md2("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST_CASE("HMAC is as RFC 2104 defines it") {
  const std::uint8_t key[16] = {0x0b, 0x0b, 0x0b, 0x0b};
  std::vector<std::uint8_t> inner(16, 0x36);
  std::vector<std::uint8_t> outer(16, 0x5c);
  for (int i = 0; i < 16; ++i) inner[i] ^= key[i], outer[i] ^= key[i];
  for (const char c : std::string_view("Hi There")) inner.push_back(static_cast<std::uint8_t>(c));
  const auto digest = interposer::md2(inner);
  outer.insert(outer.end(), digest.begin(), digest.end());
  CHECK(interposer::hmacMd2(key, bytes("Hi There")) == interposer::md2(outer));
}
