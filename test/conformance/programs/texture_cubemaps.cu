// Cubemaps and layered cubemaps: a direction names a face and a texel of it; seamless filters cross edges.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kEdge = 8;

struct Direction {
  float x, y, z;
  int layer;
};

/// The programming guide's table, and the texel on the face.
static float expectedAt(const std::vector<float>& values, const Direction& d) {
  const float ax = std::fabs(d.x), ay = std::fabs(d.y), az = std::fabs(d.z);
  float m, s, t;
  int face;
  if (ax > ay && ax > az) face = d.x > 0 ? 0 : 1, m = ax, s = d.x > 0 ? -d.z : d.z, t = -d.y;
  else if (ay > az) face = d.y > 0 ? 2 : 3, m = ay, s = d.x, t = d.y > 0 ? d.z : -d.z;
  else face = d.z > 0 ? 4 : 5, m = az, s = d.z > 0 ? d.x : -d.x, t = -d.y;
  const int i = int((s / m + 1) / 2 * kEdge), j = int((t / m + 1) / 2 * kEdge);
  return values[((d.layer * 6 + face) * kEdge + j) * kEdge + i];
}

/// Directions to the middle of texels of all faces, of different lengths.
static std::vector<Direction> directions(int layers) {
  std::vector<Direction> all;
  for (int layer = 0; layer < layers; ++layer)
    for (int axis = 0; axis < 3; ++axis)
      for (const float side : {-1.0f, 1.0f})
        for (int j = 0; j < kEdge; ++j)
          for (int i = 0; i < kEdge; ++i) {
            const float length = 1 + (i + j) % 3, a = (2 * i + 1.0f) / kEdge - 1, b = (2 * j + 1.0f) / kEdge - 1;
            float v[3];
            v[axis] = side * length, v[(axis + 1) % 3] = a * length, v[(axis + 2) % 3] = b * length;
            all.push_back({v[0], v[1], v[2], layer});
          }
  return all;
}

static std::vector<float> pattern(int faces) {
  std::vector<float> values(faces * kEdge * kEdge);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  return values;
}

static void single() {
  const auto values = pattern(6);
  const cudaArray_t array = arrayOf(values, kEdge, kEdge, 6, cudaArrayCubemap);
  Settings settings;
  settings.normalized = true;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  const auto points = directions(1);
  const auto results = fetched<float>(points, [=] __device__(Direction d) { return texCubemap<float>(texture, d.x, d.y, d.z); });
  EXPECT(different("cubemap", results, 0, [&](std::size_t i) { return expectedAt(values, points[i]); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void layered() {
  const auto values = pattern(18);
  const cudaArray_t array = arrayOf(values, kEdge, kEdge, 18, cudaArrayCubemap | cudaArrayLayered);
  Settings settings;
  settings.normalized = true;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  const auto points = directions(3);
  const auto results =
      fetched<float>(points, [=] __device__(Direction d) { return texCubemapLayered<float>(texture, d.x, d.y, d.z, d.layer); });
  EXPECT(different("layered", results, 0, [&](std::size_t i) { return expectedAt(values, points[i]); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

/// Each face has one colour. On an edge, a seamless filter mixes two of them, another one does not.
static void edges() {
  std::vector<float> values;
  for (int face = 0; face < 6; ++face) values.insert(values.end(), kEdge * kEdge, float(10 << face));
  const cudaArray_t array = arrayOf(values, kEdge, kEdge, 6, cudaArrayCubemap);
  Settings settings{cudaAddressModeClamp, cudaFilterModeLinear};
  settings.normalized = true;
  for (const bool seamless : {false, true}) {
    cudaTextureDesc description = describe(settings);
    description.seamlessCubemap = seamless;
    const cudaTextureObject_t texture = textureOf(resourceOf(array), description);
    const std::vector<Direction> points{{1, 0, 0.999f}, {-1, 0.999f, 0}, {0, -0.999f, 1}, {1, 0, 0}};
    const auto results = fetched<float>(points, [=] __device__(Direction d) { return texCubemap<float>(texture, d.x, d.y, d.z); });
    const float faces[][2] = {{10, 160}, {20, 40}, {160, 80}, {10, 10}};
    EXPECT(different(seamless ? "seamless" : "clamped", results, seamless ? 2.5f : 0,
                     [&](std::size_t i) { return seamless ? (faces[i][0] + faces[i][1]) / 2 : faces[i][0]; }) == 0);
    EXPECT_OK(cudaDestroyTextureObject(texture));
  }
  EXPECT_OK(cudaFreeArray(array));
}

int main() {
  single();
  layered();
  edges();
  return verdict();
}
