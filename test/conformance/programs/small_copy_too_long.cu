// A small copy that is longer than the device memory is refused before the host's memory is read:
// it is shorter, too.
// conformance: judges=itself
#include <sys/mman.h>

#include "expect.h"

int main() {
  constexpr std::size_t device = 8 << 20, page = 4096;
  char* d = nullptr;
  EXPECT_OK(cudaMalloc(&d, device));
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* h = static_cast<char*>(mmap(nullptr, 2 * page, PROT_NONE, flags, -1, 0));
  EXPECT(mprotect(h, page, PROT_READ | PROT_WRITE) == 0);
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemset(d, 7, device));
  char* const end = d + device;
  for (const std::size_t bytes : {page + 1, 2 * page}) {
    EXPECT(cudaMemcpy(end - page, h, bytes, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyAsync(end - page, h, bytes, cudaMemcpyHostToDevice, stream) ==
           cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(h, end - page, bytes, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  }
  EXPECT(h[0] == 0 && h[page - 1] == 0);
  EXPECT_OK(cudaMemcpy(h, end - page, page, cudaMemcpyDeviceToHost));
  EXPECT(h[0] == 7 && h[page - 1] == 7);
  EXPECT_OK(cudaMemcpy(d, h, page, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaStreamSynchronize(stream));
  return verdict();
}
