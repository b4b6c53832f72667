// Launch attributes: priority, memory domains, an access window, shared memory, programmatic serialization and events; in captures, too.
// conformance: flags="-lcuda -arch=sm_90" judges=itself
#include "stream_memory.h"

__global__ void produce(unsigned* at) {
  asm volatile("griddepcontrol.launch_dependents;");
  at[threadIdx.x] = threadIdx.x + 1;
}
__global__ void consume(const unsigned* from, unsigned* to) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  to[threadIdx.x] = from[threadIdx.x] * 10;
}

CUfunction functionOf(const void* kernel) {
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, kernel));
  return function;
}

struct Launch {
  CUlaunchAttribute attribute{};
  CUlaunchConfig config{};
  Launch(CUlaunchAttributeID id, CUstream stream) {
    attribute.id = id;
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 8, config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  CUlaunchAttributeValue& value() { return attribute.value; }
};

struct Test {
  Words words;
  CUstream stream = makeStream();
  CUfunction producer = functionOf(reinterpret_cast<const void*>(produce)), consumer = functionOf(reinterpret_cast<const void*>(consume));
  CUdeviceptr from = words.device, to = words.device + 64;
  ~Test() { OK(cuStreamDestroy(stream)); }

  CUresult runProducer(const Launch& launch) {
    void* arguments[] = {&from};
    return cuLaunchKernelEx(&launch.config, producer, arguments, nullptr);
  }
  CUresult runConsumer(const Launch& launch) {
    void* arguments[] = {&from, &to};
    return cuLaunchKernelEx(&launch.config, consumer, arguments, nullptr);
  }
  void produces(const Launch& launch, int line) {
    OK(cuMemsetD32(from, 0, 8));
    OK(cuCtxSynchronize());
    expectDriver(runProducer(launch), CUDA_SUCCESS, "launch", line);
    OK(cuStreamSynchronize(stream));
    expect(words.at(0) == 1 && words.at(7) == 8, "the kernel ran", line);
  }
};

void hints(Test& test) {
  Launch priority(CU_LAUNCH_ATTRIBUTE_PRIORITY, test.stream);
  priority.value().priority = -1;
  test.produces(priority, __LINE__);
  Launch domain(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, test.stream);
  domain.value().memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  test.produces(domain, __LINE__);
  Launch map(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, test.stream);
  map.value().memSyncDomainMap.default_ = 0;
  map.value().memSyncDomainMap.remote = 1;
  test.produces(map, __LINE__);
  Launch window(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, test.stream);
  window.value().accessPolicyWindow = {reinterpret_cast<void*>(test.from), 64, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING};
  test.produces(window, __LINE__);
  Launch carveout(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, test.stream);
  carveout.value().sharedMemCarveout = 50;
  test.produces(carveout, __LINE__);
  test.produces(Launch(CU_LAUNCH_ATTRIBUTE_IGNORE, test.stream), __LINE__);
  EXPECT(test.runProducer(Launch(static_cast<CUlaunchAttributeID>(63), test.stream)) != CUDA_SUCCESS);
}

/// The second kernel may start early, and waits for the first one's results.
void serialization(Test& test) {
  Launch first(CU_LAUNCH_ATTRIBUTE_IGNORE, test.stream), second(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, test.stream);
  second.value().programmaticStreamSerializationAllowed = 1;
  OK(cuMemsetD32Async(test.from, 0, 8, test.stream));
  OK(test.runProducer(first));
  OK(test.runConsumer(second));
  OK(cuStreamSynchronize(test.stream));
  EXPECT(test.words.at(16) == 10 && test.words.at(23) == 80);
}

void events(Test& test) {
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Launch completion(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, test.stream);
  completion.value().launchCompletionEvent.event = event;
  OK(test.runProducer(completion));
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(test.stream));
  Launch programmatic(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, test.stream);
  programmatic.value().programmaticEvent.event = event;
  programmatic.value().programmaticEvent.triggerAtBlockStart = 0;
  OK(test.runProducer(programmatic));
  OK(cuEventSynchronize(event));
  OK(cuStreamSynchronize(test.stream));
  EXPECT(test.words.at(3) == 4);
  OK(cuEventDestroy(event));
}

void captured(Test& test) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  size_t count = 1;
  Launch launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, test.stream);
  launch.value().cooperative = 1;
  OK(cuStreamBeginCapture(test.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(test.runProducer(launch));
  OK(cuStreamEndCapture(test.stream, &graph));
  OK(cuGraphGetNodes(graph, &node, &count));
  CUkernelNodeAttrValue value{};
  OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT(value.cooperative == 1);
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuMemsetD32(test.from, 0, 8));
  OK(cuCtxSynchronize());  // the graph's stream does not wait for the memset
  OK(cuGraphLaunch(exec, test.stream));
  OK(cuStreamSynchronize(test.stream));
  EXPECT(test.words.at(7) == 8);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

int main() {
  useContext();
  Test test;
  hints(test);
  serialization(test);
  events(test);
  captured(test);
  return verdict();
}
