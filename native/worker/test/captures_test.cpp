// Which captures the worker knows, with the simulated driver: no client can hide one.
#include "native/worker/session/captures.h"

#include <latch>
#include <optional>
#include <thread>

#include "native/worker/session/host_functions.h"
#include "native/worker/test/session_fixture.h"

namespace {

using worker::test::Frames;
using worker::test::kMiB;
using worker::test::Reply;

constexpr std::uint64_t kPerThread = 2;

/// A session with two contexts, the first of which is current, and a stream of that one.
struct Capturing : worker::test::SimulatedSession {
  std::uint64_t other = 0, stream = 0;

  Capturing() : SimulatedSession(4096 * kMiB) {
    other = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0}).handle;
    use(context);
    stream = frames.call(CallNumber::cuStreamCreate, 1u).handle;
  }
  ~Capturing() { frames.call(CallNumber::cuCtxDestroy_v2, other); }

  void use(std::uint64_t one) { frames.call(CallNumber::cuCtxSetCurrent, one); }
  static CUresult begin(Frames& thread, std::uint64_t stream) {
    return thread.call(CallNumber::cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED)
        .status;
  }
  CUresult begin(std::uint64_t stream) { return begin(frames, stream); }
  CUresult end(std::uint64_t stream) {
    return frames.call(CallNumber::cuStreamEndCapture, stream).status;
  }
  std::size_t captures() const { return session.captures.state() & 0xffff'ffff; }
  CUstream driverStream() const {
    return static_cast<CUstream>(session.handles.find(wire::HandleKind::stream, stream));
  }
};

TEST_CASE_FIXTURE(Capturing, "a call that fails without a current context ends no capture") {
  CHECK(begin(kPerThread) == CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) use(0);  // one for each context that was made
  CHECK(end(kPerThread) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(captures() == 1);
  use(context);
  CHECK(end(kPerThread) == CUDA_SUCCESS);
  CHECK(captures() == 0);
}

TEST_CASE_FIXTURE(Capturing, "a thread captures in its per-thread streams of two contexts") {
  for (const bool inOrder : {false, true}) {
    CHECK(begin(kPerThread) == CUDA_SUCCESS);
    use(other);
    CHECK(begin(kPerThread) == CUDA_SUCCESS);
    CHECK(captures() == 2);
    if (inOrder) use(context);
    CHECK(end(kPerThread) == CUDA_SUCCESS);
    CHECK(captures() == 1);
    CHECK(end(kPerThread) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(captures() == 1);
    use(inOrder ? other : context);
    CHECK(end(kPerThread) == CUDA_SUCCESS);
    CHECK(captures() == 0);
    use(context);
  }
}

// Its place may be that of a thread that has ended, and whose capture other streams take part in.
TEST_CASE_FIXTURE(Capturing, "a new thread ends no capture of an earlier one") {
  std::optional<Frames> place;
  const auto inThread = [&](auto body) {
    std::thread([&] {
      place.emplace(session).call(CallNumber::cuCtxSetCurrent, context);
      body(*place);
      place.reset();
    }).join();
  };
  const auto begins = [&](Frames& thread) { CHECK(begin(thread, kPerThread) == CUDA_SUCCESS); };
  const auto ends = [&](Frames& thread, CUresult expected) {
    CHECK(thread.call(CallNumber::cuStreamEndCapture, kPerThread).status == expected);
  };
  inThread(begins);
  CHECK(captures() == 1);
  inThread([&](Frames& thread) { ends(thread, CUDA_ERROR_ILLEGAL_STATE); });
  CHECK(captures() == 1);
  inThread([&](Frames& thread) { begins(thread), ends(thread, CUDA_SUCCESS); });
  CHECK(captures() == 1);
}

TEST_CASE_FIXTURE(Capturing, "a thread that ends beside a capture leaves it valid") {
  std::latch worked(1), capturing(1);
  std::thread ending([&] {
    Frames thread(session);
    thread.call(CallNumber::cuCtxSetCurrent, context);
    CHECK(thread.thread.follow(driverStream()));
    worked.count_down();
    capturing.wait();
  });
  worked.wait();
  CHECK(frames.call(CallNumber::cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL)
            .status == CUDA_SUCCESS);
  capturing.count_down();
  ending.join();
  CHECK(end(stream) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Capturing, "a copy of another thread leaves a capture valid") {
  const std::uint64_t memory = frames.call(CallNumber::cuMemAlloc_v2, std::size_t{4096}).handle;
  CHECK(frames.call(CallNumber::cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL)
            .status == CUDA_SUCCESS);
  std::thread([&] {
    Frames thread(session);
    thread.call(CallNumber::cuCtxSetCurrent, context);
    const auto copy = [&](wire::Encoder& frame) {
      frame.put(wire::CopyFrame{0, memory, 8, kPerThread, wire::kCopyEnds, 0});
    };
    CHECK(thread.send(CallNumber::cuMemcpyDtoHAsync_v2, copy).status == CUDA_SUCCESS);
  }).join();
  CHECK(end(stream) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Capturing, "a capture that fails at its end is over, and no other one") {
  const std::uint64_t second = frames.call(CallNumber::cuStreamCreate, 1u).handle;
  const std::uint64_t event = frames.call(CallNumber::cuEventCreate, 2u).handle;
  CHECK(begin(stream) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuEventRecord, event, stream).status == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuStreamWaitEvent, second, event, 0u).status == CUDA_SUCCESS);
  CHECK(end(second) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(captures() == 1);
  frames.call(CallNumber::cuLaunchHostFunc, second, std::uint64_t{1}, std::uint64_t{2});
  CHECK(end(stream) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(captures() == 0);
}

TEST_CASE_FIXTURE(Capturing, "captures end with their stream or context, and no other ones do") {
  CHECK(begin(stream) == CUDA_SUCCESS);
  CHECK(begin(kPerThread) == CUDA_SUCCESS);
  use(other);
  CHECK(begin(kPerThread) == CUDA_SUCCESS);
  CHECK(captures() == 3);
  CHECK(frames.call(CallNumber::cuStreamDestroy_v2, stream).status == CUDA_SUCCESS);
  CHECK(captures() == 2);
  CHECK(frames.call(CallNumber::cuCtxDestroy_v2, other).status == CUDA_SUCCESS);
  CHECK(captures() == 1);
  use(context);
  CHECK(end(kPerThread) == CUDA_SUCCESS);
  CHECK(captures() == 0);
}

// What the driver does with other streams of the capture is not documented.
TEST_CASE_FIXTURE(Capturing, "the driver is asked about captures whose stream or context is gone") {
  CHECK(begin(stream) == CUDA_SUCCESS);
  CHECK(end(stream) == CUDA_SUCCESS);
  session.driver.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    return *status = CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_SUCCESS;
  };
  CHECK(!frames.thread.isCaptured(CU_STREAM_PER_THREAD));
  SUBCASE("a stream") {
    CHECK(begin(stream) == CUDA_SUCCESS);
    CHECK(frames.call(CallNumber::cuStreamDestroy_v2, stream).status == CUDA_SUCCESS);
  }
  SUBCASE("a context") {
    use(other);
    CHECK(begin(kPerThread) == CUDA_SUCCESS);
    CHECK(frames.call(CallNumber::cuCtxDestroy_v2, other).status == CUDA_SUCCESS);
    use(context);
  }
  CHECK(captures() == 0);
  CHECK(!session.captures.any());
  CHECK(frames.thread.isCaptured(CU_STREAM_PER_THREAD));
}

// Its context is unknown then, and so is that of a device of which no context is retained.
TEST_CASE_FIXTURE(Capturing, "the reset of an unused device ends no capture") {
  session.driver.cuStreamGetCtx = [](CUstream, CUcontext*) { return CUDA_ERROR_NOT_SUPPORTED; };
  session.driver.cuCtxGetCurrent = [](CUcontext*) { return CUDA_ERROR_INVALID_CONTEXT; };
  CHECK(begin(stream) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuDevicePrimaryCtxReset_v2, CUdevice{0}).status == CUDA_SUCCESS);
  CHECK(captures() == 1);
  CHECK(end(stream) == CUDA_SUCCESS);
  CHECK(captures() == 0);
}

/// Streams that capture without the call that begins a capture.
TEST_CASE_FIXTURE(Capturing, "a stream that joins a capture from another context is known") {
  const std::uint64_t event = frames.call(CallNumber::cuEventCreate, 2u).handle;
  CHECK(begin(kPerThread) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuEventRecord, event, kPerThread).status == CUDA_SUCCESS);
  use(other);
  CHECK(frames.call(CallNumber::cuStreamWaitEvent, kPerThread, event, 0u).status == CUDA_SUCCESS);
  CHECK(frames.thread.isCaptured(CU_STREAM_PER_THREAD));
  CHECK(end(kPerThread) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(frames.thread.isCaptured(CU_STREAM_PER_THREAD));
  use(context);
  CHECK(end(kPerThread) == CUDA_SUCCESS);
  use(other);
  CHECK(!frames.thread.isCaptured(CU_STREAM_PER_THREAD));
  CHECK(frames.call(CallNumber::cuStreamWaitEvent, kPerThread, event, 0u).status ==
        CUDA_ERROR_CAPTURED_EVENT);
  use(context);
}

TEST_CASE_FIXTURE(Capturing, "a capture into a graph of the program is known") {
  const std::uint64_t graph = frames.call(CallNumber::cuGraphCreate, 0u).handle;
  auto* const into = static_cast<CUgraph>(session.handles.find(wire::HandleKind::graph, graph));
  CHECK(worker::cuStreamBeginCaptureToGraph(frames.thread, driverStream(), into, nullptr, nullptr,
                                            0, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(captures() == 1);
  CHECK(session.captures.graphs() == std::vector{graph});
  CHECK(
      frames
          .call(CallNumber::cuThreadExchangeStreamCaptureMode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
          .status == CUDA_SUCCESS);
  CHECK(frames.thread.isCaptured(driverStream()));
  CHECK(end(stream) == CUDA_SUCCESS);
  CHECK(captures() == 0);
}

// It begins as soon as the allocation has passed its ticket, so before the driver waits.
TEST_CASE_FIXTURE(Capturing, "a capture that begins while an allocation waits is valid") {
  static worker::Driver driver;
  static CUstream captured;
  driver = session.driver;
  captured = driverStream();
  static const auto capture = [] {
    CHECK(driver.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  };
  session.driver.cuCtxSynchronize = [] { return capture(), driver.cuCtxSynchronize(); };
  session.driver.cuEventSynchronize = [](CUevent event) {
    return capture(), driver.cuEventSynchronize(event);
  };
  const std::uint64_t freed = frames.call(CallNumber::cuMemAlloc_v2, 2 * kMiB).handle;
  CHECK(frames.call(CallNumber::cuMemFreeAsync, freed, kPerThread).status == CUDA_SUCCESS);
  const std::size_t tooMuch = 5000 * kMiB;
  Reply refused;
  SUBCASE("cuMemAlloc") { refused = frames.call(CallNumber::cuMemAlloc_v2, tooMuch); }
  SUBCASE("cuMemAllocAsync") {
    refused = frames.call(CallNumber::cuMemAllocAsync, tooMuch, kPerThread);
  }
  CHECK(refused.status == CUDA_ERROR_OUT_OF_MEMORY);
  session.driver.cuCtxSynchronize = driver.cuCtxSynchronize;
  session.driver.cuEventSynchronize = driver.cuEventSynchronize;
  CUgraph graph = nullptr;
  CHECK(driver.cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
  CHECK(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

// The worker could miss a rule of the driver, so it asks before it leaves a pointer there.
TEST_CASE_FIXTURE(Capturing, "no node of a graph points to a host function that runs once") {
  const worker::Driver& driver = session.driver;
  const std::uint64_t memory = frames.call(CallNumber::cuMemAlloc_v2, std::size_t{4096}).handle;
  CHECK(driver.cuStreamBeginCapture_v2(driverStream(), CU_STREAM_CAPTURE_MODE_RELAXED) ==
        CUDA_SUCCESS);
  CHECK(captures() == 0);
  CHECK(frames.call(CallNumber::cuLaunchHostFunc, stream, std::uint64_t{1}, std::uint64_t{2})
            .status == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuMemFreeAsync, memory, stream).status != CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(driver.cuStreamEndCapture(driverStream(), &graph) == CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  std::size_t count = 0;
  CHECK(driver.cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(driver.cuGraphGetNodes(graph, &node, &count) == CUDA_SUCCESS);
  CUDA_HOST_NODE_PARAMS params{};
  CHECK(driver.cuGraphHostNodeGetParams(node, &params) == CUDA_SUCCESS);
  CHECK((params.fn == worker::runInClient));
  CHECK(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuMemFree_v2, memory).status == CUDA_SUCCESS);
}

}  // namespace
