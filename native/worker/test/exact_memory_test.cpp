// The charges of sessions whose memory is of the driver's cuMemAlloc: those that see several GPUs,
// and those whose GPU cannot map memory.
#include <atomic>
#include <cstdlib>
#include <vector>

#include "native/worker/test/session_fixture.h"

namespace {

using worker::SlackAccount;
using worker::test::kMiB;

constexpr std::uint64_t kLimit = 256 * kMiB, kPiece = kMiB / 2;
constexpr int kPieces = 64;  // of 16 pages

struct TwoGpus {
  TwoGpus() { setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "2", 1); }
};

struct Fixture : TwoGpus, worker::test::SimulatedSession {
  Fixture() : SimulatedSession(kLimit, true) { before_ = taken(); }

  /// Bytes of the GPU's memory that are taken since the start.
  std::uint64_t held() { return taken() - before_; }
  worker::test::Reply allocate(std::size_t bytes) {
    return frames.call(CallNumber::cuMemAlloc_v2, bytes);
  }
  std::vector<CUdeviceptr> allocate(int count, std::size_t bytes) {
    std::vector<CUdeviceptr> all;
    for (int i = 0; i < count; ++i) {
      const auto made = allocate(bytes);
      CHECK(made.status == CUDA_SUCCESS);
      all.push_back(made.handle);
    }
    return all;
  }
  /// Frees all but the first one of each page. Returns the rest.
  std::vector<CUdeviceptr> thinOut(const std::vector<CUdeviceptr>& all) {
    std::vector<CUdeviceptr> rest;
    for (const CUdeviceptr each : all) {
      if (rest.empty() ||
          each / worker::FreeRanges::kPage != rest.back() / worker::FreeRanges::kPage)
        rest.push_back(each);
      else
        CHECK(free(each) == CUDA_SUCCESS);
    }
    return rest;
  }
  CUresult free(CUdeviceptr address) {
    return frames.call(CallNumber::cuMemFree_v2, address).status;
  }
  CUresult freeBehind(CUdeviceptr address, std::uint64_t stream) {
    return frames.call(CallNumber::cuMemFreeAsync, address, stream).status;
  }

 private:
  std::uint64_t taken() {
    std::size_t available = 0, total = 0;
    CHECK(session.memory.below().cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS);
    return total - available;
  }

  std::uint64_t before_ = 0;
};

/// Holds up the default stream of the current context.
class Obstacle {
 public:
  explicit Obstacle(const worker::Driver& driver) : driver_(driver) {
    const auto wait = [](void* gone) { static_cast<std::atomic<bool>*>(gone)->wait(false); };
    CHECK(driver.cuLaunchHostFunc(nullptr, wait, &gone_) == CUDA_SUCCESS);
  }
  void remove() {
    gone_ = true;
    gone_.notify_all();
    CHECK(driver_.cuCtxSynchronize() == CUDA_SUCCESS);
  }

 private:
  const worker::Driver& driver_;
  std::atomic<bool> gone_{false};
};

}  // namespace

TEST_CASE("a program cannot hold more than its quota by freeing all but a piece of each page") {
  Fixture test;
  std::vector<CUdeviceptr> pieces;
  for (auto made = test.allocate(kPiece); made.status == CUDA_SUCCESS; made = test.allocate(kPiece))
    pieces.push_back(made.handle);
  CHECK(pieces.size() == kLimit / kPiece);
  test.thinOut(pieces);
  CHECK(test.held() <= kLimit + SlackAccount::kFree);
  int large = 0;
  while (test.allocate(4 * kMiB).status == CUDA_SUCCESS) ++large;
  CHECK(large <= 1);
  CHECK(test.held() <= kLimit + SlackAccount::kFree);
}

TEST_CASE("the pages of the driver are charged beyond what the node bears") {
  Fixture test;
  const auto rest = test.thinOut(test.allocate(kPieces, kPiece));
  CHECK(test.quota.used() + SlackAccount::kFree == rest.size() * 2 * kMiB);
  CHECK(test.quota.used() + SlackAccount::kFree >= test.held());
  for (const CUdeviceptr each : rest) CHECK(test.free(each) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 0);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("a page is charged until the stream comes to the free of its last piece") {
  Fixture test;
  const auto rest = test.thinOut(test.allocate(kPieces, kPiece));
  const std::uint64_t charged = test.quota.used();
  Obstacle obstacle(test.session.driver);
  for (const CUdeviceptr each : rest) CHECK(test.freeBehind(each, 0) == CUDA_SUCCESS);
  CHECK(test.session.pendingFrees.settle());
  test.session.slack.settle();
  CHECK(test.quota.used() == charged);
  obstacle.remove();
  CHECK_FALSE(test.session.pendingFrees.settle());
  CHECK(test.session.memory.slack() == 0);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("addresses that the driver gives again are charged to the new owner") {
  Fixture test;
  for (const CUdeviceptr each : test.allocate(kPieces, kPiece))
    CHECK(test.freeBehind(each, 0) == CUDA_SUCCESS);
  CHECK(test.session.driver.cuCtxSynchronize() == CUDA_SUCCESS);
  const auto again = test.allocate(kPieces, kPiece);
  CHECK(test.session.memory.slack() == 0);
  CHECK(test.quota.used() == 2 * kPieces * kPiece);
  CHECK_FALSE(test.session.pendingFrees.settle());
  CHECK(test.quota.used() == kPieces * kPiece);
  const auto rest = test.thinOut(again);
  CHECK(test.quota.used() + SlackAccount::kFree == rest.size() * 2 * kMiB);
  for (const CUdeviceptr each : rest) CHECK(test.free(each) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("pages end with their context") {
  Fixture test;
  const auto other = test.frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  REQUIRE(other.status == CUDA_SUCCESS);
  const auto rest = test.thinOut(test.allocate(kPieces, kPiece));
  CHECK(test.freeBehind(rest.front(), 0) == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuCtxDestroy_v2, other.handle).status == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 0);
  CHECK(test.quota.used() == 0);
  REQUIRE(test.frames.call(CallNumber::cuCtxSetCurrent, test.context).status == CUDA_SUCCESS);
}

TEST_CASE("addresses of a context whose end is not known yet are charged to the new owner") {
  Fixture test;
  const auto other = test.frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  REQUIRE(other.status == CUDA_SUCCESS);
  const auto former = test.allocate(kPieces, kPiece);
  CUcontext ended = nullptr;
  CHECK(test.session.driver.cuCtxGetCurrent(&ended) == CUDA_SUCCESS);
  CHECK(test.session.driver.cuCtxDestroy_v2(ended) == CUDA_SUCCESS);
  REQUIRE(test.frames.call(CallNumber::cuCtxSetCurrent, test.context).status == CUDA_SUCCESS);
  const auto again = test.allocate(kPieces, kPiece);
  CHECK(again.back() == former.back());
  test.session.contextEnded(ended);
  const auto rest = test.thinOut(again);
  CHECK(test.session.memory.slack() == rest.size() * (2 * kMiB - kPiece));
  for (const CUdeviceptr each : rest) CHECK(test.free(each) == CUDA_SUCCESS);
  CHECK(test.session.memory.slack() == 0);
}

TEST_CASE("the node bears some slack on each GPU") {
  Fixture test;
  const auto second = test.frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{1});
  REQUIRE(second.status == CUDA_SUCCESS);
  const std::uint64_t before = test.quota.used();
  std::uint64_t requests = 0;
  for (const std::uint64_t context : {test.context, second.handle}) {
    REQUIRE(test.frames.call(CallNumber::cuCtxSetCurrent, context).status == CUDA_SUCCESS);
    requests += test.thinOut(test.allocate(5, kMiB)).size() * kMiB;
  }
  CHECK(test.session.memory.slack() > SlackAccount::kFree);
  CHECK(test.quota.used() == before + requests);
  CHECK(test.frames.call(CallNumber::cuCtxDestroy_v2, second.handle).status == CUDA_SUCCESS);
  REQUIRE(test.frames.call(CallNumber::cuCtxSetCurrent, test.context).status == CUDA_SUCCESS);
}
