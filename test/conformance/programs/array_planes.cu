// Planes of an array for video engines are arrays.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

/// Bytes go into a plane and come back.
static bool works(CUarray plane, std::size_t w, std::size_t h) {
  std::vector<unsigned char> in(w * h), out(w * h);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i * 7 + w;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = in.data(), copy.srcPitch = w;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = plane;
  copy.WidthInBytes = w, copy.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = plane;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = out.data(), copy.dstPitch = w;
  EXPECT_DRIVER(cuMemcpy2D(&copy));
  return in == out;
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  CUarray frame = nullptr, plane = nullptr, plain = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR bytes{256, 128, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  EXPECT_DRIVER(cuArray3DCreate(&plain, &bytes));
  EXPECT(cuArrayGetPlane(&plane, plain, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT_DRIVER(cuArrayDestroy(plain));
  const CUDA_ARRAY3D_DESCRIPTOR video{256, 128, 0, CU_AD_FORMAT_NV12, 3, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE};
  EXPECT_DRIVER(cuArray3DCreate(&frame, &video));
  CUDA_ARRAY3D_DESCRIPTOR seen{};
  EXPECT_DRIVER(cuArrayGetPlane(&plane, frame, 0));
  EXPECT_DRIVER(cuArray3DGetDescriptor(&seen, plane));
  EXPECT(seen.Width == 256 && seen.Height == 128 && seen.NumChannels == 1);
  EXPECT(works(plane, 256, 128));
  EXPECT_DRIVER(cuArrayGetPlane(&plane, frame, 1));
  EXPECT_DRIVER(cuArray3DGetDescriptor(&seen, plane));
  EXPECT(seen.Width == 128 && seen.Height == 64 && seen.NumChannels == 2);
  EXPECT(works(plane, 256, 64));
  EXPECT(cuArrayGetPlane(&plane, frame, 2) == CUDA_ERROR_INVALID_VALUE);
  EXPECT_DRIVER(cuArrayDestroy(frame));
  return verdict();
}
