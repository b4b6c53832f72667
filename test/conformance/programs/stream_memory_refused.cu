// Words of managed memory that streams write, and wait for, while the program has their pages.
// conformance: flags=-lcuda judges=itself
// conformance: build=moves flags=-lcuda managed=moves judges=itself
#include "stream_memory.h"

constexpr std::size_t kBytes = 4 << 20;

int main() {
  unsigned* words = nullptr;
  EXPECT_OK(cudaMallocManaged(&words, kBytes));
  EXPECT_OK(cudaMemset(words, 0, kBytes));  // pages move after the first work on the GPU
  EXPECT_OK(cudaDeviceSynchronize());
  const CUstream stream = makeStream();
  const auto device = reinterpret_cast<CUdeviceptr>(words);
  for (unsigned round = 1; round <= 5; ++round) {
    words[1] = round;
    OK(cuStreamWriteValue32(stream, device, 100 + round, 0));
    OK(cuStreamSynchronize(stream));
    EXPECT(words[0] == 100 + round && words[1] == round);
    words[2] = 7 + round;
    OK(cuStreamWaitValue32(stream, device + 8, 7 + round, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64(stream, device + 16, round, 0));
    OK(cuStreamSynchronize(stream));
    EXPECT(words[4] == round && words[5] == 0);
  }
  OK(cuStreamDestroy(stream));
  EXPECT_OK(cudaFree(words));
  return verdict();
}
