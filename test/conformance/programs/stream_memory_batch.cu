// cuStreamBatchMemOp: writes, waits and barriers in one call and in nodes of graphs, whose parameters change.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "stream_memory.h"

using Operation = CUstreamBatchMemOpParams;

Operation write32(CUdeviceptr address, unsigned value) {
  Operation operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  operation.writeValue.value = value;
  return operation;
}

Operation write64(CUdeviceptr address, unsigned long long value) {
  Operation operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  return operation;
}

Operation wait32(CUdeviceptr address, unsigned value) {
  Operation operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = address;
  operation.waitValue.value = value;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return operation;
}

Operation barrier() {
  Operation operation{};
  operation.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  operation.memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
  return operation;
}

/// Two streams that answer each other three times.
void pingPong(const Words& words) {
  const CUstream first = makeStream(), second = makeStream();
  std::vector<Operation> one, other;
  for (unsigned round = 1; round <= 3; ++round) {
    one.push_back(write32(words.device, round));
    one.push_back(wait32(words.device + 4, round));
    other.push_back(wait32(words.device, round));
    other.push_back(barrier());
    other.push_back(write32(words.device + 4, round));
  }
  other.push_back(write64(words.device + 8, 7));
  OK(cuStreamBatchMemOp(second, other.size(), other.data(), 0));
  EXPECT(cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  OK(cuStreamBatchMemOp(first, one.size(), one.data(), 0));
  OK(cuStreamSynchronize(first));
  OK(cuStreamSynchronize(second));
  EXPECT(words.at(0) == 3 && words.at(1) == 3 && words.at(2) == 7);
  OK(cuStreamDestroy(first));
  OK(cuStreamDestroy(second));
}

void refused(const Words& words) {
  Operation one = write32(words.device, 1);
  one.writeValue.address = words.device + 3;
  EXPECT(cuStreamBatchMemOp(nullptr, 1, &one, 0) != CUDA_SUCCESS);
  one.operation = static_cast<CUstreamBatchMemOpType>(99);
  EXPECT(cuStreamBatchMemOp(nullptr, 1, &one, 0) != CUDA_SUCCESS);
}

void nodes(const Words& words, CUcontext context) {
  const CUstream stream = makeStream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr, behind = nullptr;
  Operation operations[] = {wait32(words.pinned, 1), write32(words.device + 20, 11)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{context, 2, operations, 0}, seen{};
  Operation last = write32(words.device + 24, 12);
  CUDA_BATCH_MEM_OP_NODE_PARAMS lastParams{context, 1, &last, 0};
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
  OK(cuGraphAddBatchMemOpNode(&behind, graph, &node, 1, &lastParams));
  OK(cuGraphBatchMemOpNodeGetParams(node, &seen));
  EXPECT(seen.count == 2 && seen.ctx == context && seen.paramArray != nullptr);
  if (seen.count == 2 && seen.paramArray != nullptr)
    EXPECT(seen.paramArray[1].writeValue.address == words.device + 20 && seen.paramArray[1].writeValue.value == 11);
  last = write32(words.device + 24, 13);
  OK(cuGraphBatchMemOpNodeSetParams(behind, &lastParams));
  OK(cuGraphInstantiate(&exec, graph, 0));
  words.host[0] = 0;
  OK(cuGraphLaunch(exec, stream));
  EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  words.host[0] = 1;
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(5) == 11 && words.at(6) == 13);
  last = write32(words.device + 24, 14);
  OK(cuGraphExecBatchMemOpNodeSetParams(exec, behind, &lastParams));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(6) == 14);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy(stream));
}

int main() {
  const CUcontext context = useContext();
  const Words words;
  pingPong(words);
  refused(words);
  nodes(words, context);
  return verdict();
}
