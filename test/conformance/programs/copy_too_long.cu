// Copies that are longer than the device memory are refused before the host's memory is read or
// written: it is shorter, too.
// conformance: judges=itself
#include <sys/mman.h>

#include "expect.h"

int main() {
  constexpr std::size_t device = 8 << 20, host = 1 << 20;
  char* d = nullptr;
  EXPECT_OK(cudaMalloc(&d, device));
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* h = static_cast<char*>(mmap(nullptr, 2 * host, PROT_NONE, flags, -1, 0));
  EXPECT(mprotect(h, host, PROT_READ | PROT_WRITE) == 0);
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemset(d, 7, device));
  for (const std::size_t bytes : {device + 1, 2 * device}) {
    EXPECT(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, stream) == cudaErrorInvalidValue);
  }
  EXPECT(h[0] == 0 && h[host - 1] == 0);
  EXPECT_OK(cudaMemcpy(h, d, host, cudaMemcpyDeviceToHost));
  EXPECT(h[0] == 7 && h[host - 1] == 7);
  EXPECT_OK(cudaStreamSynchronize(stream));
  return verdict();
}
