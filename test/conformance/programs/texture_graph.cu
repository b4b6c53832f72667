// A graph that copies to an array, reads it through a texture, and writes another array through a surface; captured, and launched with new contents.
// conformance: judges=itself
#include "textures.h"

constexpr int kWidth = 64;

__global__ void invert(cudaTextureObject_t texture, cudaSurfaceObject_t surface) {
  const int i = threadIdx.x;
  surf1Dwrite(tex1D<float>(texture, kWidth - i - 0.5f) + 1, surface, i * 4);
}

int main() {
  const cudaArray_t in = arrayOf(std::vector<float>(kWidth), kWidth);
  const cudaArray_t out = arrayOf(std::vector<float>(kWidth), kWidth, 0, 0, cudaArraySurfaceLoadStore);
  const cudaTextureObject_t texture = textureOf(resourceOf(in), describe({}));
  const cudaResourceDesc resource = resourceOf(out);
  cudaSurfaceObject_t surface = 0;
  float *from = nullptr, *to = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaCreateSurfaceObject(&surface, &resource));
  EXPECT_OK(cudaMalloc(&from, kWidth * 4));
  EXPECT_OK(cudaMalloc(&to, kWidth * 4));
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaMemcpy2DToArrayAsync(in, 0, 0, from, kWidth * 4, kWidth * 4, 1, cudaMemcpyDeviceToDevice, stream));
  invert<<<1, kWidth, 0, stream>>>(texture, surface);
  EXPECT_OK(cudaMemcpy2DFromArrayAsync(to, kWidth * 4, out, 0, 0, kWidth * 4, 1, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    std::vector<float> values(kWidth), got(kWidth);
    for (int i = 0; i < kWidth; ++i) values[i] = float(100 * round + i);
    EXPECT_OK(cudaMemcpy(from, values.data(), kWidth * 4, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaMemcpy(got.data(), to, kWidth * 4, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kWidth; ++i) right &= got[i] == values[kWidth - 1 - i] + 1;
    EXPECT(right);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaDestroySurfaceObject(surface));
  EXPECT_OK(cudaFreeArray(in));
  EXPECT_OK(cudaFreeArray(out));
  EXPECT_OK(cudaFree(from));
  EXPECT_OK(cudaFree(to));
  EXPECT_OK(cudaStreamDestroy(stream));
  return verdict();
}
