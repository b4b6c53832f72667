// Work in several streams, ordered by events alone: each stream appends to what the stream before it wrote.
// conformance:
#include "show.h"

__global__ void spinThenAppend(int* list, int* length, int value, int turns) {
  volatile int waste = 0;
  for (int i = 0; i < turns; ++i) waste = waste + i;
  list[(*length)++] = value + (waste == -1);
}

int main() {
  constexpr int streams = 4, rounds = 5;
  cudaStream_t stream[streams];
  cudaEvent_t done[streams];
  for (int i = 0; i < streams; ++i) {
    SHOW(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    SHOW(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
  }
  int *list = nullptr, *length = nullptr, out[streams * rounds] = {}, count = 0;
  SHOW(cudaMalloc(&list, sizeof out));
  SHOW(cudaMalloc(&length, sizeof count));
  SHOW(cudaMemsetAsync(length, 0, sizeof count, stream[streams - 1]));
  SHOW(cudaEventRecord(done[streams - 1], stream[streams - 1]));
  for (int i = 0; i < streams * rounds; ++i) {
    const int mine = i % streams, before = (i + streams - 1) % streams;
    cudaStreamWaitEvent(stream[mine], done[before], 0);
    spinThenAppend<<<1, 1, 0, stream[mine]>>>(list, length, 100 * mine + i, (streams - mine) * 500);
    cudaEventRecord(done[mine], stream[mine]);
  }
  SHOW(cudaGetLastError());
  SHOW(cudaStreamSynchronize(stream[(streams * rounds - 1) % streams]));
  SHOW(cudaMemcpy(out, list, sizeof out, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(&count, length, sizeof count, cudaMemcpyDeviceToHost));
  std::printf("%d:", count);
  for (int value : out) std::printf(" %d", value);
  std::printf("\n");
  for (int i = 0; i < streams; ++i) {
    SHOW(cudaEventDestroy(done[i]));
    SHOW(cudaStreamDestroy(stream[i]));
  }
}
