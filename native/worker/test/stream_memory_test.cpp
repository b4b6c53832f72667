// Memory operations of streams: addresses of a hostile client, and waits that nothing ends.
#include <sys/mman.h>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

struct Fixture : worker::test::SimulatedSession {
  std::uint64_t stream = 0, word = 0;

  Fixture() : SimulatedSession(64 * worker::test::kMiB) {
    stream = give(CallNumber::cuStreamCreate, 1u);
    word = give(CallNumber::cuMemAlloc_v2, std::size_t{64});
    frames.call(CallNumber::cuMemsetD8Async, word, static_cast<unsigned char>(0), std::size_t{64},
                std::uint64_t{0});
    CHECK(session.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  }

  template <class... T>
  std::uint64_t give(CallNumber number, T... arguments) {
    const worker::test::Reply reply = frames.call(number, arguments...);
    CHECK(reply.status == CUDA_SUCCESS);
    return reply.handle;
  }
  CUresult write(CUdeviceptr address) {
    return frames.call(CallNumber::cuStreamWriteValue32_v2, stream, address, 1u, 0u).status;
  }
  CUresult batch(CUstreamBatchMemOpParams operation) {
    const auto encode = [&](wire::Encoder& frame) {
      frame.put(stream);
      frame.putBytes(&operation, sizeof operation);
      frame.put(0u);
    };
    return frames.send(CallNumber::cuStreamBatchMemOp_v2, encode).status;
  }
};

CUstreamBatchMemOpParams writeAt(CUdeviceptr address) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  return operation;
}

TEST_CASE("only memory of the GPU and of the client is written") {
  Fixture test;
  CHECK(test.write(test.word) == CUDA_SUCCESS);
  unsigned own = 7;
  CHECK(test.write(reinterpret_cast<CUdeviceptr>(&own)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.write(0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.write(~CUdeviceptr{3}) == CUDA_ERROR_INVALID_VALUE);

  // Pinned memory of the worker itself, which a GPU could write.
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(test.session.driver.cuMemHostRegister_v2(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP) ==
        CUDA_SUCCESS);
  const auto pinned = reinterpret_cast<CUdeviceptr>(page);
  CHECK(test.write(pinned) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.batch(writeAt(pinned)) == CUDA_ERROR_INVALID_VALUE);
  CUstreamBatchMemOpParams unknown = writeAt(test.word);
  unknown.operation = static_cast<CUstreamBatchMemOpType>(77);
  CHECK(test.batch(unknown) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.batch(writeAt(test.word)) == CUDA_SUCCESS);

  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  node.memOp.count = 1;
  const std::uint64_t graph = test.give(CallNumber::cuGraphCreate, 0u);
  const auto add = [&](const CUstreamBatchMemOpParams& operation, std::size_t bytes) {
    return test.frames.send(CallNumber::cuGraphAddNode_v2, [&](wire::Encoder& frame) {
      frame.put(graph);
      frame.put<std::uint64_t>(0);
      frame.put<std::uint64_t>(0);
      frame.put(node);
      frame.putBytes(&operation, bytes);
    });
  };
  CHECK(add(writeAt(pinned), sizeof node.memOp.paramArray[0]).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(writeAt(test.word), 8).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(writeAt(test.word), sizeof node.memOp.paramArray[0]).status == CUDA_SUCCESS);
  CHECK(test.session.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(test.session.driver.cuMemHostUnregister(page) == CUDA_SUCCESS);
  munmap(page, 4096);
}

TEST_CASE("a wait that nothing has ended yet holds up no thread of the worker") {
  Fixture test;
  const std::uint64_t other = test.give(CallNumber::cuStreamCreate, 1u);
  test.give(CallNumber::cuStreamWaitValue32_v2, test.stream, test.word, 5u,
            unsigned{CU_STREAM_WAIT_VALUE_EQ});
  CHECK(test.frames.call(CallNumber::cuStreamQuery, test.stream).status == CUDA_ERROR_NOT_READY);
  test.give(CallNumber::cuStreamWriteValue32_v2, other, test.word, 5u, 0u);
  test.give(CallNumber::cuStreamSynchronize, test.stream);
}

}  // namespace
