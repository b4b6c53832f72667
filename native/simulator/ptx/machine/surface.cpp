// suld, sust and sured.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "native/simulator/ptx/machine/half.h"
#include "native/simulator/ptx/machine/images.h"
#include "native/simulator/ptx/machine/texture.h"

namespace simulator::ptx {
namespace {

/// Target of an access: an address, or none.
struct Target {
  std::uint8_t* address = nullptr;  ///< null: reads give 0, writes have no effect
  CUresult fault = CUDA_SUCCESS;
};

/// The coordinates in the order x, y, z; layers are z.
std::array<std::int64_t, 3> coordinatesOf(Warp& w, const Operation* op, unsigned lane,
                                          Geometry geometry) {
  std::array<std::int64_t, 3> given{};
  for (unsigned i = 0; i < 3; ++i) {
    if (op->uses & (1u << (5 + i))) given[i] = w.at<std::int32_t>(op->slot[5 + i])[lane];
  }
  if (isLayered(geometry)) std::rotate(given.begin(), given.begin() + 1, given.end());
  return given;
}

Target locate(const Image& image, const SurfaceAccess& access,
              std::array<std::int64_t, 3> coordinates) {
  const ImageLevel& level = image.levels.front();
  const std::int64_t element = image.elementBytes();
  const std::int64_t bytes =
      access.formatted ? element : std::int64_t{access.elements} * access.bytes;
  auto& [x, y, z] = coordinates;
  if (access.formatted) x *= element;
  const std::int64_t last[] = {std::int64_t{level.width} * element - bytes, level.height - 1ll,
                               level.depth - 1ll};
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::int64_t& at = coordinates[axis];
    if (at >= 0 && at <= last[axis]) continue;
    if (access.beyond == SurfaceAccess::Beyond::zero) return {};
    if (access.beyond == SurfaceAccess::Beyond::trap || last[axis] < 0)
      return {nullptr, CUDA_ERROR_LAUNCH_FAILED};
    at = std::clamp<std::int64_t>(at, 0, last[axis]);
  }
  std::uint8_t* const address = reinterpret_cast<std::uint8_t*>(level.address) +
                                static_cast<std::uint64_t>(z) * level.layerBytes +
                                static_cast<std::uint64_t>(y) * level.rowBytes +
                                static_cast<std::uint64_t>(x);
  // Rows have no gaps here, so only an atomic operation minds where they begin.
  const bool atomic = access.kind == SurfaceAccess::Kind::reduce;
  if (x % bytes != 0 || (atomic && reinterpret_cast<std::uint64_t>(address) % access.bytes != 0))
    return {nullptr, CUDA_ERROR_MISALIGNED_ADDRESS};
  return {address, CUDA_SUCCESS};
}

/// For a report.
std::string describe(const Image& image, const std::array<std::int64_t, 3>& at) {
  const ImageLevel& level = image.levels.front();
  return "(" + std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2]) +
         ") in a surface of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
         " x " + std::to_string(level.depth) + " elements of " +
         std::to_string(image.elementBytes()) + " bytes";
}

/// One channel of a formatted store.
std::uint32_t stored(std::uint32_t word, const ImageFormat& format) {
  const float value = std::bit_cast<float>(word);
  if (format.kind == ImageFormat::Kind::floatingPoint)
    return format.bytes == 2 ? floatToHalf(value) : word;
  const double most = format.kind == ImageFormat::Kind::signedInteger
                          ? std::ldexp(1.0, 8 * format.bytes - 1) - 1
                          : std::ldexp(1.0, 8 * format.bytes) - 1;
  if (format.normalized) {
    const double low = format.kind == ImageFormat::Kind::signedInteger ? -1 : 0;
    return static_cast<std::uint32_t>(
        std::lrint(std::clamp(std::isnan(value) ? 0.0 : double{value}, low, 1.0) * most));
  }
  if (format.kind == ImageFormat::Kind::signedInteger)
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(
        std::clamp<double>(static_cast<std::int32_t>(word), -most - 1, most)));
  return static_cast<std::uint32_t>(std::min<double>(word, most));
}

void storeFormatted(Warp& w, const Operation* op, unsigned lane, const Image& image,
                    const SurfaceAccess& access, std::uint8_t* to) {
  for (unsigned i = 0; i < std::min<unsigned>(image.channels, access.elements); ++i) {
    const std::uint32_t word = stored(w.at<std::uint32_t>(op->slot[i])[lane], image.format);
    std::memcpy(to + i * image.format.bytes, &word, image.format.bytes);
  }
}

template <class Word>
void reduce(SurfaceReduction reduction, Word operand, std::uint8_t* at) {
  using Signed = std::make_signed_t<Word>;
  const std::atomic_ref<Word> target(*reinterpret_cast<Word*>(at));
  Word before = target.load(), after = 0;
  do {
    switch (reduction) {
      case SurfaceReduction::add: after = before + operand; break;
      case SurfaceReduction::bitAnd: after = before & operand; break;
      case SurfaceReduction::bitOr: after = before | operand; break;
      case SurfaceReduction::minimum: after = std::min(before, operand); break;
      case SurfaceReduction::maximum: after = std::max(before, operand); break;
      case SurfaceReduction::minimumSigned:
        after = static_cast<Word>(
            std::min<Signed>(static_cast<Signed>(before), static_cast<Signed>(operand)));
        break;
      case SurfaceReduction::maximumSigned:
        after = static_cast<Word>(
            std::max<Signed>(static_cast<Signed>(before), static_cast<Signed>(operand)));
        break;
    }
  } while (!target.compare_exchange_weak(before, after));
}

void access(Warp& w, const Operation* op, unsigned lane, const Image& image,
            const SurfaceAccess& what, std::uint8_t* at) {
  if (what.kind == SurfaceAccess::Kind::reduce) {
    if (at == nullptr) return;
    const auto reduction = static_cast<SurfaceReduction>(what.reduction);
    return what.bytes == 8 ? reduce(reduction, w.at<std::uint64_t>(op->slot[0])[lane], at)
                           : reduce(reduction, w.at<std::uint32_t>(op->slot[0])[lane], at);
  }
  const bool loads = what.kind == SurfaceAccess::Kind::load;
  if (!loads && at == nullptr) return;
  if (!loads && what.formatted) return storeFormatted(w, op, lane, image, what, at);
  for (unsigned i = 0; i < what.elements; ++i) {
    std::uint8_t* value = w.at<std::uint8_t>(op->slot[i]) + lane * what.registerBytes;
    if (!loads) {
      std::memcpy(at + i * what.bytes, value, what.bytes);
      continue;
    }
    std::memset(value, 0, what.registerBytes);
    if (at != nullptr) std::memcpy(value, at + i * what.bytes, what.bytes);
  }
}

}  // namespace

const Operation* accessSurface(Warp& w, const Operation* op, std::uint32_t mask) {
  const auto what = std::bit_cast<SurfaceAccess>(op->immediate);
  Known<Image> known;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Image* image = known.find(w, op, lane);
    if (image == nullptr) return unknownImage(w, op, lane, "surface");
    const auto coordinates = coordinatesOf(w, op, lane, what.geometry);
    const Target target = locate(*image, what, coordinates);
    if (target.fault != CUDA_SUCCESS)
      return faultOfImage(w, op, lane, target.fault, describe(*image, coordinates));
    access(w, op, lane, *image, what, target.address);
  }
  return op + 1;
}

}  // namespace simulator::ptx
