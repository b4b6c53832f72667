#include "native/simulator/ptx/machine/texture.h"

#include <bit>

#include "native/simulator/ptx/machine/half.h"
#include "native/simulator/ptx/machine/images.h"

namespace simulator::ptx {
namespace {

SamplePoint pointOf(const Warp& w, unsigned lane, const TextureFetch& fetch) {
  SamplePoint point;
  const auto asFloat = [&](unsigned row) { return std::bit_cast<float>(w.staged[row][lane]); };
  if (isLayered(fetch.geometry)) point.layer = w.staged[kStagedLayer][lane];
  for (unsigned axis = 0; axis < 3; ++axis) {
    point.at[axis] = asFloat(kStagedPoint + axis);
    point.texel[axis] = static_cast<std::int32_t>(w.staged[kStagedPoint + axis][lane]);
    if (fetch.level != LevelOf::gradients) continue;
    point.dx[axis] = asFloat(kStagedDx + axis);
    point.dy[axis] = asFloat(kStagedDy + axis);
  }
  if (fetch.level == LevelOf::given)
    point.level = fetch.wholeCoordinates
                      ? static_cast<float>(static_cast<std::int32_t>(w.staged[kStagedLevel][lane]))
                      : asFloat(kStagedLevel);
  return point;
}

void answer(Warp& w, const Operation* op, unsigned lane, TextureFetch::Results results,
            const Words& words) {
  const auto half = [&](unsigned i) { return floatToHalf(std::bit_cast<float>(words[i])); };
  switch (results) {
    case TextureFetch::Results::words:
      for (unsigned i = 0; i < 4; ++i) w.at<std::uint32_t>(op->slot[i])[lane] = words[i];
      break;
    case TextureFetch::Results::halves:
      for (unsigned i = 0; i < 4; ++i) w.at<std::uint16_t>(op->slot[i])[lane] = half(i);
      break;
    case TextureFetch::Results::pairs:
      for (unsigned i = 0; i < 2; ++i)
        w.at<std::uint32_t>(op->slot[i])[lane] = half(2 * i) | std::uint32_t{half(2 * i + 1)} << 16;
      break;
  }
}

std::uint32_t ask(ImageQuery query, const Image& image, std::size_t level, bool normalized) {
  const ImageLevel& of = image.levels[std::min(level, image.levels.size() - 1)];
  const bool flat = image.shape == ImageShape::d1 || image.shape == ImageShape::layered1d;
  switch (query) {
    case ImageQuery::width: return of.width;
    case ImageQuery::height: return flat || image.shape == ImageShape::linear ? 0 : of.height;
    case ImageQuery::depth: return image.shape == ImageShape::d3 ? of.depth : 0;
    case ImageQuery::layers: return image.shape == ImageShape::d3 ? 0 : of.depth;
    case ImageQuery::levels: return static_cast<std::uint32_t>(image.levels.size());
    case ImageQuery::normalized: return normalized ? 1 : 0;
    default: return 1;
  }
}

}  // namespace

const Operation* stageOperands(Warp& w, const Operation* op, std::uint32_t mask) {
  for (unsigned i = 0; i < op->width; ++i) {
    const std::uint32_t* source = w.at<std::uint32_t>(op->slot[i]);
    std::uint32_t* row = w.staged[op->detail + i];
    for (std::uint32_t left = mask; left; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      row[lane] = source[lane];
    }
  }
  return op + 1;
}

const Operation* fetchTexture(Warp& w, const Operation* op, std::uint32_t mask) {
  const auto fetch = std::bit_cast<TextureFetch>(op->immediate);
  Known<Texture> known;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Texture* texture = known.find(w, op, lane);
    if (texture == nullptr) return unknownImage(w, op, lane, "texture");
    Sampling sampling(*texture, *w.processor->memory, fetch.geometry);
    const SamplePoint point = pointOf(w, lane, fetch);
    const Words words = fetch.gathers            ? sampling.gather(point, fetch.channel)
                        : fetch.wholeCoordinates ? sampling.texel(point, fetch.level)
                                                 : sampling.sample(point, fetch.level);
    if (sampling.failed())
      return faultOfImage(w, op, lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                          "the memory of the texture is in no allocation");
    answer(w, op, lane, fetch.results, words);
  }
  return op + 1;
}

const Operation* queryImage(Warp& w, const Operation* op, std::uint32_t mask) {
  const auto query = static_cast<ImageQuery>(op->detail);
  Known<Texture> textures;
  Known<Image> surfaces;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Texture* texture = op->width == 1 ? nullptr : textures.find(w, op, lane);
    const Image* image = op->width == 1       ? surfaces.find(w, op, lane)
                         : texture == nullptr ? nullptr
                                              : &texture->image;
    if (image == nullptr) return unknownImage(w, op, lane, op->width == 1 ? "surface" : "texture");
    const std::uint32_t level = op->uses & 2 ? w.at<std::uint32_t>(op->slot[1])[lane] : 0;
    const bool normalized = texture != nullptr && texture->sampler.normalizedCoordinates;
    w.at<std::uint32_t>(op->slot[0])[lane] = ask(query, *image, level, normalized);
  }
  return op + 1;
}

}  // namespace simulator::ptx
