// Wrap and mirror at coordinates far from 0: only the fraction counts, and for mirror whether the whole part is odd.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

int main() {
  const std::vector<float> values{1, 4, 9};
  const cudaArray_t array = arrayOf(values, 3);
  // Whole numbers, and a pair of points within the first period for each.
  const std::vector<float> far{16, 8388608, 2147483520.0f, 2147483648.0f, 2147483904.0f, 1e20f, 3.4028234e38f, -16, -2147483520.0f, -1e20f, -3.4028234e38f};
  for (const auto mode : {cudaAddressModeWrap, cudaAddressModeMirror}) {
    Settings settings{mode};
    settings.normalized = true;
    const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
    const auto at = [=](const std::vector<float>& points) { return fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); }); };
    const auto results = at(far);
    for (float result : results) EXPECT(result == 1);
    const auto odd = at({8388609, -8388609, 0.5f + 4096, 0.25f - 4096, 0.25f - 4097});
    const bool mirrored = mode == cudaAddressModeMirror;
    EXPECT(odd[0] == (mirrored ? 9 : 1) && odd[1] == (mirrored ? 9 : 1));
    EXPECT(odd[2] == 4 && odd[3] == 1 && odd[4] == (mirrored ? 9 : 1));
    EXPECT_OK(cudaDestroyTextureObject(texture));
  }
  EXPECT_OK(cudaFreeArray(array));
  return verdict();
}
