// Address modes of textures, in one and two dimensions, with points and linear filters, normalized coordinates and others.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kWidth = 16, kHeight = 8;

static const char* nameOf(cudaTextureAddressMode mode) {
  const char* names[] = {"wrap", "clamp", "mirror", "border"};
  return names[mode];
}

/// Wrap and mirror become clamp without normalized coordinates.
static cudaTextureAddressMode effective(const Settings& settings) {
  const bool repeats = settings.address == cudaAddressModeWrap || settings.address == cudaAddressModeMirror;
  return repeats && !settings.normalized ? cudaAddressModeClamp : settings.address;
}

static void oneDimension(const std::vector<float>& values, cudaArray_t array, const Settings& settings) {
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  std::vector<float> points;
  for (int k = -3 * kWidth * 8; k <= 3 * kWidth * 8; ++k) points.push_back((k + 0.5f) / 8 / (settings.normalized ? kWidth : 1));
  auto results = fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  const auto mode = effective(settings);
  // A linear filter over the border halves the first texel, as with a second row of border. Other texels are not known.
  const bool halves = mode == cudaAddressModeBorder && settings.filter == cudaFilterModeLinear;
  if (halves) results.resize(3 * kWidth * 8 - 2);
  const float part = halves ? 0.5f : 1;
  const auto texel = [&](int i) {
    const int at = wrapped(mode, i, kWidth);
    return at < 0 ? 0.0f : part * values[at];
  };
  EXPECT(different(nameOf(settings.address), results, settings.filter == cudaFilterModePoint ? 0 : 0.4f, [&](std::size_t i) {
           const float x = points[i] * (settings.normalized ? kWidth : 1);
           return settings.filter == cudaFilterModePoint ? texel(int(std::floor(x))) : linear(x, texel);
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

static void twoDimensions(const std::vector<float>& values, cudaArray_t array, const Settings& settings) {
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  std::vector<float2> points;
  const float sx = settings.normalized ? kWidth : 1, sy = settings.normalized ? kHeight : 1;
  for (int j = -2 * kHeight; j <= 2 * kHeight; ++j)
    for (int i = -2 * kWidth; i <= 2 * kWidth; ++i) points.push_back(make_float2((i + 0.25f) / sx, (j + 0.75f) / sy));
  const auto results = fetched<float>(points, [=] __device__(float2 p) { return tex2D<float>(texture, p.x, p.y); });
  const auto mode = effective(settings);
  const auto texel = [&](int i, int j) {
    const int x = wrapped(mode, i, kWidth), y = wrapped(mode, j, kHeight);
    return x < 0 || y < 0 ? 0.0f : values[y * kWidth + x];
  };
  EXPECT(different(nameOf(settings.address), results, settings.filter == cudaFilterModePoint ? 0 : 0.8f, [&](std::size_t i) {
           const float x = points[i].x * sx, y = points[i].y * sy;
           if (settings.filter == cudaFilterModePoint) return texel(int(std::floor(x)), int(std::floor(y)));
           return linear(y, [&](int row) { return linear(x, [&](int column) { return texel(column, row); }); });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

static void borderColour(cudaArray_t array) {
  cudaTextureDesc description = describe({cudaAddressModeBorder});
  description.borderColor[0] = 7.5f;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), description);
  const auto results = fetched<float>(std::vector<float>{-1.5f, 0.5f, kWidth + 0.5f},
                                      [=] __device__(float x) { return tex1D<float>(texture, x); });
  EXPECT(results[0] == 7.5f && results[1] != 7.5f && results[2] == 7.5f);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

int main() {
  std::vector<float> values(kWidth * kHeight);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float((i * 37 + 11) % 101);
  const cudaArray_t row = arrayOf(std::vector<float>(values.begin(), values.begin() + kWidth), kWidth);
  const cudaArray_t plane = arrayOf(values, kWidth, kHeight);
  for (const auto address : {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder}) {
    for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
      for (const bool normalized : {false, true}) {
        Settings settings{address, filter};
        settings.normalized = normalized;
        oneDimension(values, row, settings);
        twoDimensions(values, plane, settings);
      }
    }
  }
  borderColour(row);
  EXPECT_OK(cudaFreeArray(row));
  EXPECT_OK(cudaFreeArray(plane));
  return verdict();
}
