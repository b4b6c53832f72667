// cuStreamWriteValue and cuStreamWaitValue: 32 and 64 bits, every condition, waits that another stream or the host ends, captured ones.
// conformance: flags=-lcuda judges=itself
#include "stream_memory.h"

void writes(const Words& words) {
  const CUstream stream = makeStream();
  OK(cuStreamWriteValue32(stream, words.device, 17, 0));
  OK(cuStreamWriteValue32(stream, words.device + 4, 18, 0));
  OK(cuStreamWriteValue64(stream, words.device + 8, 0x100000002ull, 0));
  OK(cuStreamWriteValue32(stream, words.pinned, 19, 0));
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(0) == 17 && words.at(1) == 18 && words.at(2) == 2 && words.at(3) == 1);
  EXPECT(words.host[0] == 19);
  OK(cuStreamDestroy(stream));
}

/// The stream waits until the word has the value, which must not hold for `before`.
void waits32(const Words& words, unsigned before, unsigned value, unsigned flags, unsigned after) {
  const CUstream waiter = makeStream(), writer = makeStream();
  OK(cuMemsetD32(words.device, before, 1));
  OK(cuMemsetD32(words.device + 64, 0, 1));
  OK(cuCtxSynchronize());
  OK(cuStreamWaitValue32(waiter, words.device, value, flags));
  OK(cuMemsetD32Async(words.device + 64, 5, 1, waiter));
  EXPECT(cuStreamQuery(waiter) == CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue32(writer, words.device, after, 0));
  OK(cuStreamSynchronize(waiter));
  EXPECT(words.at(16) == 5);
  OK(cuStreamDestroy(waiter));
  OK(cuStreamDestroy(writer));
}

void waits64(const Words& words) {
  const CUstream waiter = makeStream(), writer = makeStream();
  OK(cuStreamWriteValue64(writer, words.device + 32, 0xffffffffull, 0));
  OK(cuStreamSynchronize(writer));
  OK(cuStreamWaitValue64(waiter, words.device + 32, 0x100000000ull, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT(cuStreamQuery(waiter) == CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue64(writer, words.device + 32, 0x100000000ull, 0));
  OK(cuStreamSynchronize(waiter));
  OK(cuStreamWaitValue64(waiter, words.device + 32, 0x100000000ull, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamSynchronize(waiter));
  OK(cuStreamDestroy(waiter));
  OK(cuStreamDestroy(writer));
}

/// The host ends the wait. What the stream wrote before the wait is visible during it.
void hostEndsWait(const Words& words) {
  const CUstream stream = makeStream();
  words.host[1] = words.host[2] = 0;
  OK(cuStreamWriteValue32(stream, words.pinned + 8, 3, 0));
  OK(cuStreamWaitValue32(stream, words.pinned + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
  while (words.host[2] != 3) continue;
  EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  words.host[1] = 1;
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
}

void captured(const Words& words) {
  const CUstream stream = makeStream();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode nodes[2];
  size_t count = 2;
  words.host[4] = 1;
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuStreamWaitValue32(stream, words.pinned + 16, 2, CU_STREAM_WAIT_VALUE_AND));
  OK(cuStreamWriteValue32(stream, words.device, 99, 0));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphGetNodes(graph, nodes, &count));
  EXPECT(count == 2);
  for (size_t i = 0; i < count; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    OK(cuGraphNodeGetType(nodes[i], &type));
    EXPECT(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  }
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  words.host[4] = 3;
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(0) == 99);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy(stream));
}

void refused(const Words& words) {
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, words.device + 2, 0, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(nullptr, words.device + 4, 0, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(nullptr, words.device + 1, 0, CU_STREAM_WAIT_VALUE_EQ));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, words.device, 0, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
  EXPECT(cuStreamWriteValue32(nullptr, words.device, 0, 2) != CUDA_SUCCESS);
  unsigned onStack = 0;
  EXPECT(cuStreamWriteValue32(nullptr, reinterpret_cast<CUdeviceptr>(&onStack), 1, 0) != CUDA_SUCCESS);
  OK(cuCtxSynchronize());
  EXPECT(onStack == 0);
}

int main() {
  useContext();
  const Words words;
  writes(words);
  waits32(words, 4, 5, CU_STREAM_WAIT_VALUE_EQ, 5);
  waits32(words, 4, 5, CU_STREAM_WAIT_VALUE_GEQ, 7);
  waits32(words, 0xfffffff0u, 2, CU_STREAM_WAIT_VALUE_GEQ, 2);  // wraps around
  waits32(words, 4, 3, CU_STREAM_WAIT_VALUE_AND, 6);
  waits32(words, 0xfffffff0u, 0xf, CU_STREAM_WAIT_VALUE_NOR, 0xfffffee0u);
  waits64(words);
  hostEndsWait(words);
  captured(words);
  refused(words);
  return verdict();
}
