// Instructions that CUDA C++ has no function for: queries, reductions and formatted stores of surfaces.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

__global__ void query(cudaTextureObject_t texture, cudaSurfaceObject_t surface, unsigned* out) {
  asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(texture));
  asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(texture));
  asm volatile("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(texture));
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[3]) : "l"(surface));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[4]) : "l"(surface));
}

__global__ void reduce(cudaSurfaceObject_t surface) {
  const unsigned lane = threadIdx.x;
  asm volatile("sured.b.add.2d.u32.clamp [%0, {%1, %2}], %3;" ::"l"(surface), "r"(0), "r"(0), "r"(lane));
  asm volatile("sured.b.max.2d.u32.clamp [%0, {%1, %2}], %3;" ::"l"(surface), "r"(4), "r"(0), "r"(lane));
  asm volatile("sured.b.or.2d.b32.clamp [%0, {%1, %2}], %3;" ::"l"(surface), "r"(8), "r"(1), "r"(1u << lane));
}

__global__ void format(cudaSurfaceObject_t surface) {
  const unsigned x = threadIdx.x;
  asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};" ::"l"(surface), "r"(x), "r"(1), "r"(x), "r"(x + 1), "r"(300),
               "r"(7));
}

int main() {
  const cudaArray_t volume = arrayOf(std::vector<float>(8 * 6 * 5), 8, 6, 5);
  const cudaArray_t plane = arrayOf(std::vector<unsigned>(8 * 2), 8, 2, 0, cudaArraySurfaceLoadStore);
  const cudaArray_t bytes = arrayOf(std::vector<uchar4>(8 * 2), 8, 2, 0, cudaArraySurfaceLoadStore);
  const cudaTextureObject_t texture = textureOf(resourceOf(volume), describe({}));
  cudaSurfaceObject_t surface = 0, formatted = 0;
  cudaResourceDesc resource = resourceOf(plane);
  EXPECT_OK(cudaCreateSurfaceObject(&surface, &resource));
  resource = resourceOf(bytes);
  EXPECT_OK(cudaCreateSurfaceObject(&formatted, &resource));
  unsigned *out = nullptr, got[5] = {}, words[16] = {};
  EXPECT_OK(cudaMalloc(&out, sizeof got));
  query<<<1, 1>>>(texture, surface, out);
  EXPECT_OK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got[0] == 8 && got[1] == 6 && got[2] == 5);
  EXPECT(got[3] == 8 && got[4] == 2);
  reduce<<<1, 32>>>(surface);
  EXPECT_OK(cudaMemcpy2DFromArray(words, 32, plane, 0, 0, 32, 2, cudaMemcpyDeviceToHost));
  EXPECT(words[0] == 496 && words[1] == 31 && words[10] == ~0u && words[11] == 0);
  format<<<1, 8>>>(formatted);
  uchar4 elements[16] = {};
  EXPECT_OK(cudaMemcpy2DFromArray(elements, 32, bytes, 0, 0, 32, 2, cudaMemcpyDeviceToHost));
  EXPECT(elements[3].x == 0 && elements[11].x == 3 && elements[11].y == 4 && elements[11].z == 255 && elements[11].w == 7);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaDestroySurfaceObject(surface));
  EXPECT_OK(cudaDestroySurfaceObject(formatted));
  EXPECT_OK(cudaFree(out));
  for (const auto array : {volume, plane, bytes}) EXPECT_OK(cudaFreeArray(array));
  return verdict();
}
