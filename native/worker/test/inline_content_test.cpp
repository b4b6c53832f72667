// Code images and copies that travel inside the frame, from a hostile client too.
#include <chrono>
#include <semaphore>
#include <string>
#include <vector>

#include "native/worker/test/ring_client.h"
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"
#include "wire/copy.h"
#include "wire/image.h"

namespace {

using worker::test::kEmptyKernel;
using worker::test::kMiB;

struct Fixture : worker::test::SimulatedSession {
  Fixture() : SimulatedSession(1024 * kMiB) {}

  /// `lengths`: what the frame says about its parts; `content`: what follows.
  worker::test::Reply load(const std::vector<std::uint64_t>& lengths, const std::string& content) {
    return frames.send(CallNumber::cuModuleLoadDataEx, [&](wire::Encoder& frame) {
      frame.put<std::uint64_t>(0);  // no memory file
      frame.put<std::uint64_t>(lengths.size());
      for (const std::uint64_t length : lengths) frame.put(length);
      if (std::byte* to = frame.space(content.size()))
        std::memcpy(to, content.data(), content.size());
      frame.put<std::uint64_t>(0);  // options
    });
  }
};

/// A copy to the device whose bytes are in the frame.
worker::test::Reply copyIn(Fixture& test, std::uint64_t to, const std::string& bytes,
                           wire::CopyWait wait, std::uint64_t stream) {
  return test.frames.send(CallNumber::cuMemcpyHtoDAsync_v2, [&](wire::Encoder& frame) {
    frame.put(wire::CopyFrame{to, 0, bytes.size(), stream, wait, 0});
    frame.putBytes(bytes.data(), bytes.size());
  });
}

/// A copy of 8 bytes to the host, whose bytes are in the reply.
worker::test::Reply copyOut(Fixture& test, std::uint64_t from, wire::CopyWait wait,
                            std::uint64_t stream) {
  return test.frames.send(CallNumber::cuMemcpyDtoHAsync_v2, [&](wire::Encoder& frame) {
    frame.put(wire::CopyFrame{0, from, 8, stream, wait, 0});
  });
}

std::uint64_t wordOf(const char* text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  return word;
}

std::string terminated(const std::string& text) { return text + '\0'; }

/// An image as it lies in a frame.
std::string inFrame(std::string image) {
  image.resize((image.size() + wire::kImageZeros + 7) / 8 * 8);
  return image;
}

}  // namespace

TEST_CASE("an image inside the frame loads") {
  Fixture test;
  const std::string image = terminated(kEmptyKernel);
  const auto loaded = test.load({image.size()}, inFrame(image));
  REQUIRE(loaded.status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuModuleUnload, loaded.handle).status == CUDA_SUCCESS);
}

TEST_CASE("an image inside the frame ends where the frame says") {
  Fixture test;
  const std::string image = terminated(kEmptyKernel);
  CHECK(test.load({kEmptyKernel.size()}, inFrame(kEmptyKernel)).status == CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.load({image.size(), image.size()}, inFrame(image) + inFrame(image)).status ==
        CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("a length that exceeds the frame, or the limit, ends the session") {
  const std::string image = terminated(kEmptyKernel);
  for (const std::uint64_t length :
       {std::uint64_t{4096}, std::uint64_t{wire::kInlineImageBytes} + 1, ~std::uint64_t{0},
        ~std::uint64_t{0} - 7}) {
    Fixture test;
    CHECK(test.load({length}, inFrame(image)).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
  }
  Fixture test;
  CHECK(test.load({0}, inFrame("")).status == CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.load({}, inFrame(image)).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
}

TEST_CASE("an image without zeros behind it ends the session") {
  const std::string image = terminated(kEmptyKernel);
  for (const std::size_t place : {image.size(), image.size() + wire::kImageZeros - 1}) {
    Fixture test;
    std::string content = inFrame(image);
    content[place] = 'x';
    CHECK(test.load({image.size()}, content).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
  }
  Fixture test;
  CHECK(test.load({image.size()}, image).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
}

TEST_CASE("copies in turn move the bytes, in every stream that a client may name") {
  Fixture test;
  const auto memory = test.frames.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096});
  const auto stream = test.frames.call(CallNumber::cuStreamCreate, 1u);
  REQUIRE(memory.status == CUDA_SUCCESS);
  REQUIRE(stream.status == CUDA_SUCCESS);
  for (const std::uint64_t of :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, stream.handle}) {
    for (const char* text : {"abcdefgh", "ijklmnop"}) {
      CHECK(copyIn(test, memory.handle, text, wire::kCopyEndsInTurn, of).status == CUDA_SUCCESS);
      const auto back = copyOut(test, memory.handle, wire::kCopyEndsInTurn, of);
      CHECK(back.status == CUDA_SUCCESS);
      CHECK(back.second == wordOf(text));  // behind the length
    }
  }
  CHECK(test.frames.call(CallNumber::cuMemFree_v2, memory.handle).status == CUDA_SUCCESS);
}

TEST_CASE("copies in turn check what other copies check") {
  Fixture test;
  CHECK(copyIn(test, 0x550000000000, "abcdefgh", wire::kCopyEndsInTurn, 0).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(copyOut(test, 0x550000000000, wire::kCopyEndsInTurn, 0).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(copyIn(test, 0x550000000000, "abcdefgh", wire::kCopyEndsInTurn, 0x7777).status ==
        CUDA_ERROR_INVALID_HANDLE);
  const auto memory = test.frames.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096});
  REQUIRE(memory.status == CUDA_SUCCESS);
  // An unknown kind of wait is a copy that ends before the reply.
  CHECK(copyIn(test, memory.handle, "abcdefgh", wire::CopyWait{77}, 0).status == CUDA_SUCCESS);
  CHECK(copyOut(test, memory.handle, wire::CopyWait{77}, 0).second == wordOf("abcdefgh"));
  // A host address is checked whatever the kind of wait.
  const auto refused =
      test.frames.send(CallNumber::cuMemcpyHtoDAsync_v2, [&](wire::Encoder& frame) {
        frame.put(wire::CopyFrame{memory.handle, 0x550000001000, 8, 0, wire::kCopyEndsInTurn, 0});
        frame.putBytes(nullptr, 0);
      });
  CHECK(refused.status == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.frames.call(CallNumber::cuMemFree_v2, memory.handle).status == CUDA_SUCCESS);
}

TEST_CASE("copies that are enqueued, waited for and copied back keep their bytes") {
  Fixture test;
  const auto memory = test.frames.call(CallNumber::cuMemAlloc_v2, std::uint64_t{4096});
  const auto stream = test.frames.call(CallNumber::cuStreamCreate, 1u);
  REQUIRE(memory.status == CUDA_SUCCESS);
  REQUIRE(stream.status == CUDA_SUCCESS);
  for (int round = 0; round < 200; ++round) {
    const std::string text = std::to_string(10'000'000 + round);
    const std::uint64_t of = round % 3 == 0 ? stream.handle : 0;
    const auto wait = round % 2 == 0 ? wire::kCopyEndsInTurn : wire::kCopyEnds;
    CHECK(copyIn(test, memory.handle, text, wire::kCopyEnqueued, of).status == CUDA_SUCCESS);
    if (round % 4 != 1)
      CHECK(test.frames.call(CallNumber::cuStreamSynchronize, of).status == CUDA_SUCCESS);
    const auto back = copyOut(test, memory.handle, wait, of);
    CHECK(back.status == CUDA_SUCCESS);
    CHECK(back.second == wordOf(text.c_str()));
  }
  CHECK(copyOut(test, 0x550000000000, wire::kCopyEnds, 0).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.frames.call(CallNumber::cuMemFree_v2, memory.handle).status == CUDA_SUCCESS);
}

// The call of another thread may end the work.
TEST_CASE("a copy to the host that waits for other work stops no other thread") {
  static std::binary_semaphore released(0);
  static bool inTime = false;
  Fixture test;
  const std::uint64_t stream = test.frames.call(CallNumber::cuStreamCreate, 0u).handle;
  const std::uint64_t memory = test.frames.call(CallNumber::cuMemAlloc_v2, std::size_t{8}).handle;
  worker::test::RingClient copying(test.session), other(test.session);
  std::uint64_t ticket = 0;
  const auto send = [&](auto& client, CallNumber number, auto argument) {
    return client.send(number, ticket += wire::kTicket, 0,
                       [&](wire::Encoder& frame) { frame.put(argument); });
  };
  send(copying, CallNumber::cuCtxSetCurrent, test.context);
  send(other, CallNumber::cuCtxSetCurrent, test.context);
  auto* const blocked =
      static_cast<CUstream>(test.session.handles.find(wire::HandleKind::stream, stream));
  const auto work = [](void*) { inTime = released.try_acquire_for(std::chrono::seconds(10)); };
  CHECK(test.session.driver.cuLaunchHostFunc(blocked, work, nullptr) == CUDA_SUCCESS);
  copying.publish(CallNumber::cuMemcpyDtoHAsync_v2, ticket += wire::kTicket, wire::kFrameWantsReply,
                  [&](wire::Encoder& frame) {
                    frame.put(wire::CopyFrame{0, memory, 8, stream, wire::kCopyEnds, 0});
                  });
  CHECK(send(other, CallNumber::cuStreamCreate, 1u).status == CUDA_SUCCESS);
  released.release();
  CHECK(test.session.driver.cuStreamSynchronize(blocked) == CUDA_SUCCESS);
  CHECK(inTime);
}
