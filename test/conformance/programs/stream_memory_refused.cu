// Memory operations of streams take no words of managed memory and of pools: calls, batches, nodes of graphs.
// conformance: flags=-lcuda judges=itself
#include "stream_memory.h"

constexpr std::size_t kBytes = 4 << 20;
constexpr CUresult kRefused = CUDA_ERROR_INVALID_VALUE;

__managed__ unsigned variable[4];

CUstreamBatchMemOpParams writeAt(CUdeviceptr address) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  operation.writeValue.value = 5;
  return operation;
}

void calls(CUstream stream, CUdeviceptr word) {
  FAILS(kRefused, cuStreamWriteValue32(stream, word, 5, 0));
  FAILS(kRefused, cuStreamWriteValue64(stream, word, 5, 0));
  FAILS(kRefused, cuStreamWaitValue32(stream, word, 0, CU_STREAM_WAIT_VALUE_GEQ));
  FAILS(kRefused, cuStreamWaitValue64(stream, word, 0, CU_STREAM_WAIT_VALUE_GEQ));
  CUstreamBatchMemOpParams operation = writeAt(word);
  FAILS(kRefused, cuStreamBatchMemOp(stream, 1, &operation, 0));
}

/// The driver refuses the launch; others may refuse the node.
CUresult firstError(CUstream stream, CUcontext context, CUdeviceptr word) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUstreamBatchMemOpParams operation = writeAt(word);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{context, 1, &operation, 0};
  OK(cuGraphCreate(&graph, 0));
  CUresult status = cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params);
  if (status == CUDA_SUCCESS) status = cuGraphInstantiate(&exec, graph, 0);
  if (status == CUDA_SUCCESS) status = cuGraphLaunch(exec, stream);
  if (exec != nullptr) OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  return status;
}

void refused(CUcontext context, const void* memory) {
  const auto word = reinterpret_cast<CUdeviceptr>(memory);
  const CUstream stream = makeStream();
  calls(stream, word);
  EXPECT(firstError(stream, context, word) == kRefused);
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
}

int main() {
  const CUcontext context = useContext();
  unsigned *managed = nullptr, *attached = nullptr, *pooled = nullptr;
  EXPECT_OK(cudaMallocManaged(&managed, kBytes));
  EXPECT_OK(cudaMallocManaged(&attached, 64, cudaMemAttachHost));
  EXPECT_OK(cudaMallocAsync(&pooled, 64, nullptr));
  EXPECT_OK(cudaMemset(managed, 0, kBytes));
  EXPECT_OK(cudaDeviceSynchronize());
  refused(context, managed);
  refused(context, managed + kBytes / 8);
  refused(context, attached);
  refused(context, variable);
  refused(context, pooled);
  EXPECT(managed[0] == 0 && managed[kBytes / 8] == 0 && variable[0] == 0);
  EXPECT_OK(cudaFreeAsync(pooled, nullptr));
  EXPECT_OK(cudaFree(managed));
  EXPECT_OK(cudaFree(attached));
  return verdict();
}
