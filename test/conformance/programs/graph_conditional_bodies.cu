// Conditional nodes whose values kernels set: if with else, while, switch, nested bodies, captured bodies, updates, and what is refused. Without support the program ends.
// conformance: judges=itself
// conformance: build=rdc flags="-rdc=true -lcudadevrt" judges=itself
#include <vector>

#include "graphs.h"

__global__ void setTo(cudaGraphConditionalHandle handle, const unsigned* value) { cudaGraphSetConditional(handle, *value); }
__global__ void addOne(unsigned* x) { ++*x; }
/// Adds 1, and goes on below a limit.
__global__ void countTo(cudaGraphConditionalHandle handle, unsigned* x, unsigned limit) { cudaGraphSetConditional(handle, ++*x < limit); }
__global__ void addIfOdd(cudaGraphConditionalHandle handle, const unsigned* x) { cudaGraphSetConditional(handle, *x % 2); }

struct Words {
  unsigned* device = nullptr;
  Words() {
    EXPECT_OK(cudaMalloc(&device, 64));
    clear();
  }
  ~Words() { EXPECT_OK(cudaFree(device)); }
  void clear() const {
    EXPECT_OK(cudaMemset(device, 0, 64));
    EXPECT_OK(cudaDeviceSynchronize());  // other streams do not wait for the memset
  }
  void put(int index, unsigned value) const { EXPECT_OK(cudaMemcpy(device + index, &value, 4, cudaMemcpyHostToDevice)); }
  unsigned at(int index) const {
    unsigned value = 0;
    EXPECT_OK(cudaMemcpy(&value, device + index, 4, cudaMemcpyDeviceToHost));
    return value;
  }
};

using Nodes = std::vector<cudaGraphNode_t>;

template <class... Arguments>
cudaGraphNode_t addKernel(cudaGraph_t graph, const Nodes& after, void (*kernel)(Arguments...), Arguments... given) {
  void* arguments[] = {&given...};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(kernel);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}

cudaGraphNode_t addStore(cudaGraph_t graph, unsigned* at, unsigned value) {
  cudaMemsetParams params{};
  params.dst = at, params.value = value, params.elementSize = 4, params.width = 1, params.height = 1;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  return node;
}

cudaGraphConditionalHandle makeHandle(cudaGraph_t graph) {
  cudaGraphConditionalHandle handle = 0;
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph));
  return handle;
}
cudaGraphConditionalHandle makeHandle(cudaGraph_t graph, unsigned value) {
  cudaGraphConditionalHandle handle = 0;
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph, value, cudaGraphCondAssignDefault));
  return handle;
}

cudaError_t add(cudaGraph_t graph, const Nodes& after, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size, std::vector<cudaGraph_t>& bodies, cudaGraphNode_t& node) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle, params.conditional.type = type, params.conditional.size = size;
  const cudaError_t status = cudaGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &params);
  if (status == cudaSuccess) bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
  return status;
}

struct Conditional {
  cudaGraphNode_t node = nullptr;
  std::vector<cudaGraph_t> bodies;
  Conditional(cudaGraph_t graph, const Nodes& after, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size = 1) {
    EXPECT_OK(add(graph, after, handle, type, size, bodies, node));
    cudaGraphNodeType is{};
    EXPECT_OK(cudaGraphNodeGetType(node, &is));
    EXPECT(is == cudaGraphNodeTypeConditional);
  }
};

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  Graph() { EXPECT_OK(cudaGraphCreate(&graph, 0)); }
  ~Graph() {
    if (exec != nullptr) EXPECT_OK(cudaGraphExecDestroy(exec));
    EXPECT_OK(cudaGraphDestroy(graph));
  }
  operator cudaGraph_t() const { return graph; }
  void launch() {
    if (exec == nullptr) EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_OK(cudaDeviceSynchronize());
  }
};

/// Word 0 chooses; word 1 is set by the node behind the conditional one, and the others by the bodies.
static void choices(const Words& words, cudaGraphConditionalNodeType type, unsigned size, int (*chosen)(unsigned value)) {
  Graph graph;
  const auto handle = makeHandle(graph);
  const unsigned* value = words.device;
  const Conditional conditional(graph, {addKernel(graph, {}, setTo, handle, value)}, handle, type, size);
  addKernel(graph, {conditional.node}, addOne, words.device + 1);
  for (unsigned i = 0; i < size; ++i) addStore(conditional.bodies[i], words.device + 2 + i, 7);
  for (const unsigned value : {0u, 1u, 2u, 3u, 0x80000000u, 1u, 0u}) {
    words.clear();
    words.put(0, value);
    graph.launch();
    EXPECT(words.at(1) == 1);
    for (int i = 0; i < static_cast<int>(size); ++i) EXPECT(words.at(2 + i) == (i == chosen(value) ? 7 : 0));
  }
}

static void loops(const Words& words) {
  Graph graph;
  const auto handle = makeHandle(graph, 1);
  const Conditional loop(graph, {}, handle, cudaGraphCondTypeWhile);
  addKernel(loop.bodies[0], {}, countTo, handle, words.device, 100u);
  addKernel(loop.bodies[0], {}, addOne, words.device + 1);
  for (int round = 0; round < 3; ++round) {
    words.clear();
    graph.launch();
    EXPECT(words.at(0) == 100 && words.at(1) == 100);
  }
  graph.launch();  // from 100 on the loop ends at once
  EXPECT(words.at(0) == 101 && words.at(1) == 101);
}

/// A loop with a condition in its body, and one in the body of that.
static void nested(const Words& words) {
  words.clear();
  Graph graph;
  const auto outer = makeHandle(graph, 1);
  const Conditional loop(graph, {}, outer, cudaGraphCondTypeWhile);
  const cudaGraph_t body = loop.bodies[0];
  const auto odd = makeHandle(body), inner = makeHandle(graph);
  const unsigned* counted = words.device;
  const auto count = addKernel(body, {}, countTo, outer, words.device, 10u);
  const Conditional decide(body, {addKernel(body, {count}, addIfOdd, odd, counted)}, odd, cudaGraphCondTypeIf, 2);
  addKernel(decide.bodies[1], {}, addOne, words.device + 1);
  const auto first = addKernel(decide.bodies[0], {}, addOne, words.device + 2);
  const auto chosen = addKernel(decide.bodies[0], {first}, setTo, inner, counted);
  const Conditional choice(decide.bodies[0], {chosen}, inner, cudaGraphCondTypeSwitch, 6);
  addKernel(choice.bodies[5], {}, addOne, words.device + 3);
  graph.launch();
  EXPECT(words.at(0) == 10 && words.at(1) == 5 && words.at(2) == 5 && words.at(3) == 1);
}

/// A body that a stream fills, and a conditional node within a capture.
static void captured(const Words& words) {
  words.clear();
  cudaStream_t stream = nullptr, second = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  addOne<<<1, 1, 0, stream>>>(words.device);
  cudaStreamCaptureStatus status{};
  cudaGraph_t graph = nullptr, ended = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, nullptr, &count));
  const auto handle = makeHandle(graph, 1);
  Conditional loop(graph, Nodes(last, last + count), handle, cudaGraphCondTypeWhile);
  EXPECT_OK(cudaStreamUpdateCaptureDependencies(stream, &loop.node, nullptr, 1, cudaStreamSetCaptureDependencies));
  EXPECT_OK(cudaStreamBeginCaptureToGraph(second, loop.bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  countTo<<<1, 1, 0, second>>>(handle, words.device + 1, 4);
  EXPECT_OK(cudaMemcpyAsync(words.device + 2, words.device + 1, 4, cudaMemcpyDeviceToDevice, second));
  EXPECT_OK(cudaMemsetAsync(words.device + 3, 1, 4, second));
  EXPECT_OK(cudaStreamEndCapture(second, &ended));
  EXPECT(ended == loop.bodies[0]);
  addOne<<<1, 1, 0, stream>>>(words.device + 2);
  EXPECT_OK(cudaStreamEndCapture(stream, &ended));
  EXPECT(ended == graph);
  runOnce(graph, stream);
  EXPECT(words.at(0) == 1 && words.at(1) == 4 && words.at(2) == 5 && words.at(3) == 0x01010101);
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(second));
}

/// The graph of an update: its condition is `value` at first, and its body stores `stored`.
static void fill(cudaGraph_t graph, const Words& words, unsigned value, unsigned stored, unsigned size = 1) {
  const Conditional conditional(graph, {}, makeHandle(graph, value), cudaGraphCondTypeIf, size);
  for (const cudaGraph_t body : conditional.bodies) addStore(body, words.device, stored);
}

static void updates(const Words& words) {
  words.clear();
  Graph graph, changed, other;
  fill(graph, words, 0, 7);
  fill(changed, words, 1, 9);
  fill(other, words, 1, 9, 2);
  graph.launch();
  EXPECT(words.at(0) == 0);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_OK(cudaGraphExecUpdate(graph.exec, changed, &info));
  graph.launch();
  EXPECT(words.at(0) == 9);
  EXPECT(cudaGraphExecUpdate(graph.exec, other, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
}

static void refused() {
  Graph graph, parent;
  std::vector<cudaGraph_t> bodies;
  cudaGraphNode_t node = nullptr;
  const auto handle = makeHandle(graph);
  EXPECT(add(graph, {}, handle, cudaGraphCondTypeWhile, 2, bodies, node) != cudaSuccess);
  EXPECT(add(graph, {}, handle, cudaGraphCondTypeIf, 3, bodies, node) != cudaSuccess);
  EXPECT(add(graph, {}, handle, cudaGraphCondTypeIf, 0, bodies, node) != cudaSuccess);
  const Conditional conditional(graph, {}, handle, cudaGraphCondTypeIf);
  cudaGraph_t clone = nullptr;
  EXPECT(cudaGraphClone(&clone, graph) != cudaSuccess);
  EXPECT(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph) != cudaSuccess);
  cudaGetLastError();
}

static void unusedHandle() {
  Graph graph;
  makeHandle(graph);
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiateParams params{};
  EXPECT(cudaGraphInstantiateWithParams(&exec, graph, &params) == cudaErrorInvalidValue);
  EXPECT(params.result_out == cudaGraphInstantiateConditionalHandleUnused);
  cudaGetLastError();
}

static bool supported() {
  Graph graph;
  cudaGraphConditionalHandle handle = 0;
  return cudaGraphConditionalHandleCreate(&handle, graph) != cudaErrorNotSupported;
}

int main() {
  if (!supported()) return verdict();
  const Words words;
  choices(words, cudaGraphCondTypeIf, 1, [](unsigned value) { return value != 0 ? 0 : -1; });
  choices(words, cudaGraphCondTypeIf, 2, [](unsigned value) { return value != 0 ? 0 : 1; });
  choices(words, cudaGraphCondTypeSwitch, 3, [](unsigned value) { return value < 3 ? static_cast<int>(value) : -1; });
  loops(words);
  nested(words);
  captured(words);
  updates(words);
  refused();
  unusedHandle();
  return verdict();
}
