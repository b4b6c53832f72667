// Managed memory: host and device see each other's writes at synchronisation points, at one address; copies, memsets and graph nodes take it like any memory.
// conformance: judges=itself flags=-lcuda
#include <vector>

#include "expect.h"
#include "show_driver.h"

constexpr int n = 50'000;
constexpr std::size_t bytes = n * sizeof(int);

struct Node {
  Node* next;
  int value;
};

__global__ void addOne(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += 1;
}

__global__ void sumList(const Node* node, int* sum) {
  for (*sum = 0; node != nullptr; node = node->next) *sum += node->value;
}

__global__ void count(int* counter) { atomicAdd(counter, 1); }

static void addEverywhere(int* data) { addOne<<<(n + 255) / 256, 256>>>(data, n); }

static bool all(const int* data, int value) {
  for (int i = 0; i < n; ++i) {
    if (data[i] != value) return false;
  }
  return true;
}

static void visibility(int* data) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n; ++i) data[i] = round * 10;
    addEverywhere(data);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(all(data, round * 10 + 1));
  }
}

/// Pointers inside of managed memory mean the same on both sides.
static void pointers() {
  Node* nodes = nullptr;
  int* sum = nullptr;
  EXPECT_OK(cudaMallocManaged(&nodes, 100 * sizeof *nodes));
  EXPECT_OK(cudaMallocManaged(&sum, sizeof *sum));
  for (int i = 0; i < 100; ++i) nodes[i] = {i < 99 ? &nodes[i + 1] : nullptr, i};
  sumList<<<1, 1>>>(nodes, sum);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(*sum == 4950);
  *sum = 0;
  count<<<40, 250>>>(sum);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(*sum == 10'000);
  EXPECT_OK(cudaFree(nodes));
  EXPECT_OK(cudaFree(sum));
}

static void copies(int* data, int* other) {
  std::vector<int> host(n, 7);
  int* device = nullptr;
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaMalloc(&device, bytes));
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemcpy(data, host.data(), bytes, cudaMemcpyDefault));
  EXPECT(all(data, 7));
  EXPECT_OK(cudaMemcpyAsync(device, data, bytes, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaMemcpyAsync(other, device, bytes, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(all(other, 7));
  EXPECT_OK(cudaMemset(data, 0, bytes));
  EXPECT_OK(cudaMemsetAsync(other, 1, bytes, stream));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(all(data, 0) && all(other, 0x01010101));
  EXPECT_OK(cudaMemcpyAsync(data, other, bytes, cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(all(data, 0x01010101));
  EXPECT_OK(cudaMemcpy2D(host.data(), 400, data, 400, 400, n / 100, cudaMemcpyDeviceToHost));
  EXPECT(all(host.data(), 0x01010101));
  EXPECT_OK(cudaMemcpy(other, host.data(), bytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void graphs(int* data, int* other) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaMemsetAsync(data, 0, bytes, stream));
  addOne<<<(n + 255) / 256, 256, 0, stream>>>(data, n);
  EXPECT_OK(cudaMemcpyAsync(other, data, bytes, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 3; ++launch) {
    for (int i = 0; i < n; ++i) other[i] = -1;
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(all(data, 1) && all(other, 1));
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void questions(int* data) {
  int managed = 0;
  cudaPointerAttributes attributes{};
  EXPECT_OK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
  EXPECT(managed == 1);
  EXPECT_OK(cudaPointerGetAttributes(&attributes, data + 5));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  EXPECT(attributes.devicePointer == data + 5 && attributes.hostPointer == data + 5);
  unsigned isManaged = 0, type = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  EXPECT(cuPointerGetAttribute(&isManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS);
  EXPECT(isManaged == 1);
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS);
  std::printf("memory type %u\n", type);
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  EXPECT(cuMemGetAddressRange(&begin, &size, address + 100) == CUDA_SUCCESS);
  EXPECT(begin == address && size == bytes);
}

int main() {
  int *data = nullptr, *other = nullptr;
  EXPECT_OK(cudaMallocManaged(&data, bytes));
  EXPECT_OK(cudaMallocManaged(&other, bytes, cudaMemAttachHost));
  visibility(data);
  pointers();
  copies(data, other);
  graphs(data, other);
  questions(data);
  int* refused = nullptr;
  SHOW(cudaMallocManaged(&refused, 0));
  SHOW(cudaMallocManaged(&refused, 16, 3));
  SHOW(cudaMallocManaged(&refused, 16, 0));
  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFree(other));
  SHOW(cudaFree(other));
  cudaGetLastError();
  return verdict();
}
