// Host functions in graphs, captured and added, run between the copies around them, at each launch.
// conformance: judges=itself
#include "graphs.h"

static int *pinned = nullptr, order[64], calls = 0;

static void twice(void*) { *pinned *= 2; }
static void remember(void* value) { order[calls++] = *static_cast<int*>(value); }

int main() {
  int* d = nullptr;
  int first = 1, second = 2;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaMallocHost(&pinned, sizeof(int)));
  EXPECT_OK(cudaMalloc(&d, sizeof(int)));
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaLaunchHostFunc(stream, remember, &first));
  EXPECT_OK(cudaMemcpyAsync(pinned, d, sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaLaunchHostFunc(stream, twice, nullptr));
  EXPECT_OK(cudaMemcpyAsync(d, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaLaunchHostFunc(stream, remember, &second));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT(calls == 0);
  *pinned = 1;
  EXPECT_OK(cudaMemcpy(d, pinned, sizeof(int), cudaMemcpyHostToDevice));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 10; ++launch) EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(deviceHas(d, 1, 1024));
  EXPECT(calls == 20);
  for (int i = 0; i < 20; ++i) EXPECT(order[i] == 1 + i % 2);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
