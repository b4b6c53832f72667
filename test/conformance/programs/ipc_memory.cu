// cudaIpc of memory: one process writes what the other one reads, in large and small allocations, with offsets, and opened twice.
// conformance: judges=itself
#include <utility>
#include <vector>

#include "processes.h"

namespace {

__global__ void add(int* data, int count, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

constexpr int kCount = 1 << 20;

bool all(const int* device, int count, int value) {
  std::vector<int> host(count);
  EXPECT_OK(cudaMemcpy(host.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i)
    if (host[i] != i + value) return false;
  return true;
}

int* numbers(int count) {
  std::vector<int> host(count);
  for (int i = 0; i < count; ++i) host[i] = i;
  int* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, count * sizeof(int)));
  EXPECT_OK(cudaMemcpy(device, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  return device;
}

void owner(const Processes& processes) {
  int *large = numbers(kCount), *small = numbers(100);
  cudaIpcMemHandle_t first, again, inside, other;
  EXPECT_OK(cudaIpcGetMemHandle(&first, large));
  EXPECT_OK(cudaIpcGetMemHandle(&again, large));
  EXPECT_OK(cudaIpcGetMemHandle(&inside, large + 1000));
  EXPECT_OK(cudaIpcGetMemHandle(&other, small));
  EXPECT(std::memcmp(&first, &again, sizeof first) == 0);
  EXPECT(std::memcmp(&first, &other, sizeof first) != 0);
  processes.send(first);
  processes.send(other);
  processes.meet();  // the other one has added 5
  EXPECT(all(large, kCount, 5));
  EXPECT(all(small, 100, 5));
  add<<<kCount / 256, 256>>>(large, kCount, 2);
  EXPECT_OK(cudaDeviceSynchronize());
  processes.meet();
  processes.meet();  // the other one has closed it
  EXPECT_OK(cudaFree(large));
  EXPECT_OK(cudaFree(small));
}

void user(const Processes& processes) {
  const auto first = processes.receive<cudaIpcMemHandle_t>();
  const auto other = processes.receive<cudaIpcMemHandle_t>();
  int *large = nullptr, *again = nullptr, *small = nullptr;
  EXPECT_OK(cudaIpcOpenMemHandle((void**)&large, first, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_OK(cudaIpcOpenMemHandle((void**)&again, first, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_OK(cudaIpcOpenMemHandle((void**)&small, other, cudaIpcMemLazyEnablePeerAccess));
  EXPECT(large == again);
  EXPECT(all(large, kCount, 0));
  EXPECT(all(small, 100, 0));
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaPointerGetAttributes(&attributes, large));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  add<<<kCount / 256, 256>>>(large, kCount, 5);
  add<<<1, 256>>>(small, 100, 5);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaIpcCloseMemHandle(again));
  processes.meet();
  processes.meet();  // the owner has added 2
  EXPECT(all(large, kCount, 7));
  EXPECT_OK(cudaIpcCloseMemHandle(large));
  EXPECT_OK(cudaIpcCloseMemHandle(small));
  processes.meet();
}

}  // namespace

int main() {
  Processes processes;
  if (processes.isChild())
    user(processes);
  else
    owner(processes);
  return processes.end();
}
