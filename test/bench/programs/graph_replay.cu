// Replays of a graph of 100 kernels: one at a time, and many in a row. Without graphs, each kernel
// would be a launch.
#include "measure.h"

__global__ void nothing() {}

int main() {
  constexpr int kernels = 100, replays = 100;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kernels; ++i) nothing<<<1, 32, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const double alone = best(200, [&] {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
  report("graph of 100 kernels, synchronized", alone * 1e6, "us");
  const double many = best(20, [&] {
    for (int i = 0; i < replays; ++i) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
  report("graph of 100 kernels, in a row", many / replays * 1e6, "us");
}
