// Copies from and to ordinary memory, of sizes and at offsets that exercise every way of staging.
// conformance:
#include <vector>

#include "show.h"

__global__ void invert(unsigned char* x, std::size_t n) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = ~x[i];
}

int main() {
  constexpr std::size_t most = 20 << 20;
  std::vector<unsigned char> a(most + 64), b(most + 64);
  unsigned char *d = nullptr, *e = nullptr;
  cudaStream_t stream = nullptr;
  SHOW(cudaMalloc(&d, most + 64));
  SHOW(cudaMalloc(&e, most + 64));
  SHOW(cudaStreamCreate(&stream));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = i * 131 + (i >> 8) * 7 + (i >> 16);
  for (std::size_t size :
       {std::size_t{1}, std::size_t{3}, std::size_t{64}, std::size_t{4095}, std::size_t{4097}, std::size_t{65536}, std::size_t{65537},
        std::size_t{1000003}, std::size_t{4} << 20, (std::size_t{4} << 20) + 1, std::size_t{13000001}, most}) {
    const std::size_t offset = size % 37;
    std::fill(b.begin(), b.end(), 0);
    const cudaError_t errors[] = {
        cudaMemcpy(d + 5, a.data() + offset, size, cudaMemcpyHostToDevice), (invert<<<16, 256>>>(d + 5, size), cudaGetLastError()),
        cudaMemcpy(e + 1, d + 5, size, cudaMemcpyDeviceToDevice), cudaMemcpy(b.data() + 3, e + 1, size, cudaMemcpyDeviceToHost)};
    std::printf("%zu: %08x", size, digest(b.data(), b.size()));
    for (cudaError_t error : errors) std::printf(" %s", resultName(error));
    const cudaError_t more[] = {cudaMemcpyAsync(d, b.data() + 3, size, cudaMemcpyHostToDevice, stream),
                                cudaMemcpyAsync(e, d, size, cudaMemcpyDefault, stream),
                                cudaMemcpyAsync(b.data(), e, size, cudaMemcpyDefault, stream), cudaStreamSynchronize(stream)};
    std::printf(", %08x", digest(b.data(), b.size()));
    for (cudaError_t error : more) std::printf(" %s", resultName(error));
    std::printf("\n");
  }
  unsigned char source[] = "the source of an asynchronous copy may change at once", target[sizeof source] = {};
  SHOW(cudaMemcpyAsync(d, source, sizeof source, cudaMemcpyHostToDevice, stream));
  source[0] = 'X';
  SHOW(cudaMemcpyAsync(target, d, sizeof target, cudaMemcpyDeviceToHost, stream));
  SHOW(cudaStreamSynchronize(stream));
  std::printf("%s\n", target);
  SHOW(cudaMemcpy(target, "host to host", 13, cudaMemcpyHostToHost));
  std::printf("%s\n", target);
}
