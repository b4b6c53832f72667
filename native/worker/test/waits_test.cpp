// How the wait behind a launch ends: the GPU tells the client itself, if the reply could bring
// nothing but success.
#include <atomic>
#include <optional>
#include <semaphore>

#include "native/worker/test/ring_client.h"
#include "native/worker/test/session_fixture.h"
#include "test/unit/waiting.h"
#include "wire/launch.h"

namespace {

using worker::test::kMiB;

/// In place of the driver's: the GPU writes at once, also before the work has ended. A client can
/// do so, too.
namespace gpu {
CUdeviceptr written = 0;

CUresult write(CUstream, CUdeviceptr word, cuuint64_t value, unsigned) {
  written = word;
  reinterpret_cast<std::atomic<std::uint64_t>*>(word)->store(value);
  return CUDA_SUCCESS;
}
}  // namespace gpu

struct Fixture : worker::test::SimulatedSession {
  Fixture() : SimulatedSession(1024 * kMiB) {
    session.driver.cuStreamWriteValue64_v2 = gpu::write;
    stream = frames.call(CallNumber::cuStreamCreate, 1u).handle;
    const auto loaded =
        load(frames, session, CallNumber::cuLibraryLoadData, 1, worker::test::kEmptyKernel);
    CHECK(loaded.status == CUDA_SUCCESS);
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CHECK(frames.thread.find<CUlibrary>(loaded.handle, &library) == CUDA_SUCCESS);
    CHECK(session.driver.cuLibraryGetKernel(&kernel, library, "k") == CUDA_SUCCESS);
    launch.function = frames.thread.add(wire::HandleKind::kernel, kernel, loaded.handle);
    launch.stream = stream;
    for (int i = 0; i < 3; ++i) launch.grid[i] = launch.block[i] = 1;
    ring.emplace(session);
    call(CallNumber::cuCtxSetCurrent, context);
    for (unsigned i = 1; i < worker::RegisteredReply::kUsesBefore; ++i) {
      enqueue(launch);
      CHECK(wait() == CUDA_SUCCESS);
    }
    ownWord = gpu::written;
  }

  void enqueue(const wire::LaunchFrame& frame) {
    ring->publish(CallNumber::cuLaunchKernel, ticket += wire::kTicket, 0,
                  [&](wire::Encoder& to) { to.put(frame); });
  }
  template <class... T>
  worker::test::Reply call(CallNumber number, T... arguments) {
    return ring->send(number, ticket += wire::kTicket, 0,
                      [&](wire::Encoder& to) { (to.put(arguments), ...); });
  }
  CUresult wait() {
    gpu::written = 0;
    return call(CallNumber::cuStreamSynchronize, stream).status;
  }
  /// Whether the GPU told the client that the last wait had ended.
  bool told() const { return gpu::written != 0 && gpu::written != ownWord; }

  std::uint64_t stream = 0, ticket = 0;
  CUdeviceptr ownWord = 0;  ///< the worker's
  wire::LaunchFrame launch{};
  std::optional<worker::test::RingClient> ring;
};

TEST_CASE_FIXTURE(Fixture, "the GPU tells the client that a wait behind a launch has ended") {
  for (int i = 0; i < 3; ++i) {
    enqueue(launch);
    CHECK(wait() == CUDA_SUCCESS);
    CHECK(told());
  }
  CHECK(wait() == CUDA_SUCCESS);  // no launch is before it
  CHECK_FALSE(told());
}

TEST_CASE_FIXTURE(Fixture, "the error of an earlier call comes with the reply") {
  wire::LaunchFrame wrong = launch;
  wrong.function = 0;
  enqueue(wrong);
  enqueue(launch);
  CHECK(wait() == CUDA_ERROR_INVALID_HANDLE);
  CHECK(gpu::written == ownWord);
}

TEST_CASE_FIXTURE(Fixture, "pools give back memory before the client goes on") {
  CHECK(call(CallNumber::cuMemAllocAsync, std::size_t{4096}, stream).status == CUDA_SUCCESS);
  enqueue(launch);
  CHECK(wait() == CUDA_SUCCESS);
  CHECK(gpu::written == ownWord);
}

TEST_CASE_FIXTURE(Fixture, "a client that ends its wait itself does not end the work") {
  std::binary_semaphore ended(0);
  const auto work = [](void* ended) { static_cast<std::binary_semaphore*>(ended)->acquire(); };
  auto* const blocked =
      static_cast<CUstream>(session.handles.find(wire::HandleKind::stream, stream));
  CHECK(session.driver.cuLaunchHostFunc(blocked, work, &ended) == CUDA_SUCCESS);
  enqueue(launch);
  CHECK(wait() == CUDA_SUCCESS);
  CHECK(told());
  CHECK(call(CallNumber::cuStreamQuery, stream).status == CUDA_ERROR_NOT_READY);
  ended.release();
  CHECK(session.driver.cuStreamSynchronize(blocked) == CUDA_SUCCESS);
}

TEST_CASE("what a client sends when its wait has ended, before the reply, is read at its end") {
  const auto client = wire::ClientChannel::create();
  const auto channel = wire::WorkerChannel::attach(client->file());
  const auto publish = [&](std::uint16_t flags) { client->publish(client->begin(0), 1, flags, 0); };
  worker::Figures::Word waiting{0};
  worker::Readers readers(waiting);
  worker::Readers::Reader reader(readers, channel.get());
  wire::FrameHeader frame;
  wire::Decoder payload;
  publish(wire::kFrameWantsReply);
  REQUIRE(channel->next(frame, payload));
  reader.answers(true);
  readers.drain();  // waits for nothing: the client is gone, and has sent nothing more
  publish(0);
  const unit::Waiter drains([&] { readers.drain(); });
  CHECK(drains.waits());
  CHECK(channel->next(frame, payload));
}

}  // namespace
