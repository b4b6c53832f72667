// The MD2 message digest (RFC 1319) and HMAC (RFC 2104) over it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace interposer {

using Md2Digest = std::array<std::uint8_t, 16>;

Md2Digest md2(std::span<const std::uint8_t> message);
Md2Digest hmacMd2(std::span<const std::uint8_t, 16> key, std::span<const std::uint8_t> message);

}  // namespace interposer
