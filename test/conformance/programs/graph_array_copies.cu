// Copy nodes of graphs with arrays: built by hand, captured, changed, asked for their parameters; pageable, pinned and device memory at the other end.
// conformance: judges=itself
#include <vector>

#include "graphs.h"

constexpr int w = 64, h = 48;
static const cudaExtent whole = make_cudaExtent(w, h, 1);

static cudaMemcpy3DParms between(cudaArray_t to, int* from) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(from, w * 4, w, h), copy.dstArray = to;
  copy.extent = whole, copy.kind = cudaMemcpyDefault;
  return copy;
}

static cudaMemcpy3DParms between(int* to, cudaArray_t from) {
  cudaMemcpy3DParms copy{};
  copy.srcArray = from, copy.dstPtr = make_cudaPitchedPtr(to, w * 4, w, h);
  copy.extent = whole, copy.kind = cudaMemcpyDefault;
  return copy;
}

static cudaMemcpy3DParms between(cudaArray_t to, cudaArray_t from) {
  cudaMemcpy3DParms copy{};
  copy.srcArray = from, copy.dstArray = to, copy.extent = whole, copy.kind = cudaMemcpyDefault;
  return copy;
}

int main() {
  cudaArray_t a = nullptr, b = nullptr, c = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  for (cudaArray_t* array : {&a, &b, &c}) EXPECT_OK(cudaMallocArray(array, &format, w, h));
  int *pinned = nullptr, *device = nullptr;
  EXPECT_OK(cudaMallocHost(&pinned, w * h * 4));
  EXPECT_OK(cudaMalloc(&device, w * h * 4));
  std::vector<int> in(w * h), out(w * h);
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));

  // pageable -> a -> b -> device -> c -> pinned, and c -> pageable
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t nodes[7]{};
  const cudaMemcpy3DParms copies[] = {between(a, in.data()), between(b, a),      between(device, b),
                                      between(c, device),    between(pinned, c), between(out.data(), c)};
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  for (int i = 0; i < 6; ++i)
    EXPECT_OK(cudaGraphAddMemcpyNode(&nodes[i], graph, i == 0 ? nullptr : &nodes[i - 1], i == 0 ? 0 : 1, &copies[i]));
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 1; launch <= 3; ++launch) {
    in.assign(w * h, launch);
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(all(pinned, w * h, launch) && all(out.data(), w * h, launch));
  }
  cudaMemcpy3DParms params{};
  EXPECT_OK(cudaGraphMemcpyNodeGetParams(nodes[1], &params));
  EXPECT(params.srcArray == a && params.dstArray == b);
  EXPECT_OK(cudaGraphMemcpyNodeGetParams(nodes[0], &params));
  EXPECT(params.srcPtr.ptr == in.data() && params.dstArray == a);

  // Another destination. An executable graph takes copies of one dimension only.
  const cudaMemcpy3DParms other = between(c, a);
  EXPECT(cudaGraphExecMemcpyNodeSetParams(exec, nodes[1], &other) == cudaErrorInvalidValue);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphMemcpyNodeSetParams(nodes[1], &other));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaMemset(device, 0, w * h * 4));
  in.assign(w * h, 40);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(all(out.data(), w * h, 3));  // b has the values of the launch before
  EXPECT_OK(cudaMemcpy2DFromArray(out.data(), w * 4, a, 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
  EXPECT(all(out.data(), w * h, 40));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));

  // Captured.
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaMemcpy2DToArrayAsync(a, 0, 0, in.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaMemcpy3DAsync(&copies[1], stream));
  EXPECT_OK(cudaMemcpy3DAsync(&copies[2], stream));
  addTo<<<(w * h + 255) / 256, 256, 0, stream>>>(device, w * h, 1);
  EXPECT_OK(cudaMemcpy3DAsync(&copies[3], stream));
  EXPECT_OK(cudaMemcpy2DFromArrayAsync(out.data(), w * 4, c, 0, 0, w * 4, h, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count == 6);
  for (int launch = 1; launch <= 3; ++launch) {
    in.assign(w * h, launch * 10);
    runOnce(graph, stream);
    EXPECT(all(out.data(), w * h, launch * 10 + 1));
  }
  EXPECT_OK(cudaGraphDestroy(graph));
  for (cudaArray_t array : {a, b, c}) EXPECT_OK(cudaFreeArray(array));
  return verdict();
}
