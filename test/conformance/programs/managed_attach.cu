// Attaching managed memory to the host, to all streams, or to one stream.
// conformance: judges=itself
#include "expect.h"

__global__ void addOne(int* data) { data[threadIdx.x] += 1; }

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // what was printed is seen even after a crash
  int *data = nullptr, *hostFirst = nullptr;
  cudaStream_t streams[2]{};
  EXPECT_OK(cudaMallocManaged(&data, 64 * sizeof(int)));
  EXPECT_OK(cudaMallocManaged(&hostFirst, 64 * sizeof(int), cudaMemAttachHost));
  for (cudaStream_t& stream : streams) EXPECT_OK(cudaStreamCreate(&stream));

  // Memory that begins with the host.
  for (int i = 0; i < 64; ++i) hostFirst[i] = i;
  EXPECT_OK(cudaStreamAttachMemAsync(streams[0], hostFirst));
  EXPECT_OK(cudaStreamSynchronize(streams[0]));
  addOne<<<1, 64, 0, streams[0]>>>(hostFirst);
  EXPECT_OK(cudaStreamSynchronize(streams[0]));
  for (int i = 0; i < 64; ++i) EXPECT(hostFirst[i] == i + 1);

  // Each stream its own: the host uses one while the other stream works.
  EXPECT_OK(cudaStreamAttachMemAsync(streams[0], data, 0, cudaMemAttachSingle));
  EXPECT_OK(cudaStreamAttachMemAsync(streams[1], hostFirst, 64 * sizeof(int), cudaMemAttachSingle));
  EXPECT_OK(cudaDeviceSynchronize());
  addOne<<<1, 64, 0, streams[1]>>>(hostFirst);
  for (int i = 0; i < 64; ++i) data[i] = 100 + i;
  addOne<<<1, 64, 0, streams[0]>>>(data);
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) EXPECT(data[i] == 101 + i && hostFirst[i] == i + 2);
  EXPECT_OK(cudaStreamAttachMemAsync(streams[0], data, 0, cudaMemAttachHost));
  EXPECT_OK(cudaStreamAttachMemAsync(streams[1], hostFirst, 0, cudaMemAttachGlobal));
  EXPECT_OK(cudaDeviceSynchronize());

  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFree(hostFirst));
  return verdict();
}
