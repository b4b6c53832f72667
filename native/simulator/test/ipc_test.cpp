// Memory and events of one process in another one.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::atomic<bool> released{false};

/// A process with the GPU, which performs what it is sent.
class Peer {
 public:
  enum class What {
    allocate,
    exportMemory,
    fill,
    read,
    freeMemory,
    open,
    close,
    createEvent,
    exportEvent,
    openEvent,
    recordEvent,
    release,
    queryEvent,
    waitEvent,
    queryStream,
    synchronizeStream,
    synchronize
  };
  struct Order {
    What what;
    std::uint64_t number;  ///< a size, an address or a value
    std::uint64_t second;
    CUipcMemHandle handle;
  };
  struct Answer {
    CUresult status;
    CUdeviceptr number;
    CUipcMemHandle handle;
  };

  Peer() {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    usePrimaryContext();
    Order order{};
    while (read(ends_[1], &order, sizeof order) == sizeof order) {
      const Answer answer = perform(order);
      if (write(ends_[1], &answer, sizeof answer) != sizeof answer) break;
    }
    std::_Exit(0);
  }
  ~Peer() { kill(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Answer ask(What what, std::uint64_t number = 0, std::uint64_t second = 0,
             const CUipcMemHandle& handle = {}) {
    const Order order{what, number, second, handle};
    Answer answer{CUDA_ERROR_UNKNOWN, 0, {}};
    CHECK(write(ends_[0], &order, sizeof order) == sizeof order);
    CHECK(read(ends_[0], &answer, sizeof answer) == sizeof answer);
    return answer;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ends_[0]);
    close(ends_[1]);
    pid_ = 0;
  }

 private:
  static Answer perform(const Order& order) {
    Answer answer{CUDA_SUCCESS, 0, {}};
    CUipcEventHandle eventHandle{};
    std::memcpy(&eventHandle, &order.handle, sizeof eventHandle);
    const auto event = reinterpret_cast<CUevent>(order.number);
    CUevent made = nullptr;
    unsigned value = 0;
    switch (order.what) {
      case What::allocate:
        answer.status = DRIVER(cuMemAlloc_v2)(&answer.number, order.number);
        break;
      case What::exportMemory:
        answer.status = DRIVER(cuIpcGetMemHandle)(&answer.handle, order.number);
        break;
      case What::fill:
        answer.status =
            DRIVER(cuMemsetD32_v2)(order.number, static_cast<unsigned>(order.second), 4);
        OK(DRIVER(cuCtxSynchronize)());
        break;
      case What::read:
        answer.status = DRIVER(cuMemcpyDtoH_v2)(&value, order.number, sizeof value);
        answer.number = value;
        break;
      case What::freeMemory: answer.status = DRIVER(cuMemFree_v2)(order.number); break;
      case What::open:
        answer.status = DRIVER(cuIpcOpenMemHandle_v2)(&answer.number, order.handle,
                                                      CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        break;
      case What::close: answer.status = DRIVER(cuIpcCloseMemHandle)(order.number); break;
      case What::createEvent:
        answer.status =
            DRIVER(cuEventCreate)(&made, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
        answer.number = reinterpret_cast<std::uint64_t>(made);
        break;
      case What::exportEvent:
        answer.status = DRIVER(cuIpcGetEventHandle)(&eventHandle, event);
        std::memcpy(&answer.handle, &eventHandle, sizeof eventHandle);
        break;
      case What::openEvent:
        answer.status = DRIVER(cuIpcOpenEventHandle)(&made, eventHandle);
        answer.number = reinterpret_cast<std::uint64_t>(made);
        break;
      case What::recordEvent:  // behind work that ends with the next release
        OK(DRIVER(cuLaunchHostFunc)(
            nullptr, [](void*) { released.wait(false); }, nullptr));
        answer.status = DRIVER(cuEventRecord)(event, nullptr);
        break;
      case What::release:
        released.store(true);
        released.notify_all();
        break;
      case What::queryEvent: answer.status = DRIVER(cuEventQuery)(event); break;
      case What::waitEvent: answer.status = DRIVER(cuStreamWaitEvent)(nullptr, event, 0); break;
      case What::queryStream: answer.status = DRIVER(cuStreamQuery)(nullptr); break;
      case What::synchronizeStream: answer.status = DRIVER(cuStreamSynchronize)(nullptr); break;
      case What::synchronize: answer.status = DRIVER(cuEventSynchronize)(event); break;
    }
    return answer;
  }

  int ends_[2] = {-1, -1};
  pid_t pid_ = 0;
};

using What = Peer::What;

struct Exported {
  std::uint64_t address;
  CUipcMemHandle handle;
};

Exported exportFrom(Peer& owner, std::uint64_t bytes) {
  const auto address = owner.ask(What::allocate, bytes);
  CHECK(address.status == CUDA_SUCCESS);
  const auto exported = owner.ask(What::exportMemory, address.number);
  CHECK(exported.status == CUDA_SUCCESS);
  return {address.number, exported.handle};
}

void shares(std::uint64_t bytes) {
  Peer owner, user;
  const auto [address, handle] = exportFrom(owner, bytes);
  owner.ask(What::fill, address, 17);
  const auto opened = user.ask(What::open, 0, 0, handle);
  REQUIRE(opened.status == CUDA_SUCCESS);
  CHECK(user.ask(What::read, opened.number).number == 17);
  CHECK(user.ask(What::fill, opened.number, 18).status == CUDA_SUCCESS);
  CHECK(owner.ask(What::read, address).number == 18);
  CHECK(user.ask(What::close, opened.number).status == CUDA_SUCCESS);
  CHECK(user.ask(What::close, opened.number).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(user.ask(What::read, opened.number).status == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

TEST_CASE("two processes read and write the same memory") {
  shares(8 * kMebibyte);
  shares(1000);
}

TEST_CASE("memory that is opened twice is closed by the second close") {
  Peer owner, user;
  const auto [address, handle] = exportFrom(owner, 4 * kMebibyte);
  const auto first = user.ask(What::open, 0, 0, handle);
  CHECK(user.ask(What::open, 0, 0, handle).number == first.number);
  CHECK(user.ask(What::close, first.number).status == CUDA_SUCCESS);
  CHECK(user.ask(What::read, first.number).status == CUDA_SUCCESS);
  CHECK(user.ask(What::close, first.number).status == CUDA_SUCCESS);
  CHECK(user.ask(What::read, first.number).status == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("opened memory stays valid when its owner frees it, or dies") {
  Peer user;
  Exported exported{};
  {
    Peer owner;
    exported = exportFrom(owner, 4 * kMebibyte);
    owner.ask(What::fill, exported.address, 5);
    const auto opened = user.ask(What::open, 0, 0, exported.handle);
    CHECK(owner.ask(What::freeMemory, exported.address).status == CUDA_SUCCESS);
    const auto next = owner.ask(What::allocate, 4 * kMebibyte);
    owner.ask(What::fill, next.number, 6);
    CHECK(user.ask(What::read, opened.number).number == 5);
    CHECK(user.ask(What::open, 0, 0, exportFrom(owner, 4 * kMebibyte).handle).status ==
          CUDA_SUCCESS);
    exported.address = opened.number;
  }
  CHECK(user.ask(What::read, exported.address).number == 5);
}

TEST_CASE("handles of this process, of freed memory and of nothing are refused") {
  Peer owner, user;
  const auto [address, handle] = exportFrom(owner, 4 * kMebibyte);
  CHECK(owner.ask(What::open, 0, 0, handle).status == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(user.ask(What::open).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(user.ask(What::openEvent).status == CUDA_ERROR_MAP_FAILED);
  CHECK(owner.ask(What::freeMemory, address).status == CUDA_SUCCESS);
  CHECK(user.ask(What::open, 0, 0, handle).status == CUDA_ERROR_INVALID_VALUE);
  CHECK(owner.ask(What::exportMemory, address).status == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an event orders the streams of two processes") {
  Peer owner, user;
  const auto event = owner.ask(What::createEvent).number;
  const auto exported = owner.ask(What::exportEvent, event);
  REQUIRE(exported.status == CUDA_SUCCESS);
  CHECK(owner.ask(What::openEvent, 0, 0, exported.handle).status == CUDA_ERROR_INVALID_CONTEXT);
  const auto opened = user.ask(What::openEvent, 0, 0, exported.handle).number;
  REQUIRE(opened != 0);
  CHECK(user.ask(What::queryEvent, opened).status == CUDA_SUCCESS);
  CHECK(owner.ask(What::recordEvent, event).status == CUDA_SUCCESS);
  CHECK(user.ask(What::queryEvent, opened).status == CUDA_ERROR_NOT_READY);
  CHECK(user.ask(What::waitEvent, opened).status == CUDA_SUCCESS);
  CHECK(user.ask(What::queryStream).status == CUDA_ERROR_NOT_READY);
  owner.ask(What::release);
  CHECK(user.ask(What::synchronizeStream).status == CUDA_SUCCESS);
  CHECK(owner.ask(What::queryEvent, event).status == CUDA_SUCCESS);
  CHECK(user.ask(What::recordEvent, opened).status == CUDA_SUCCESS);
  CHECK(owner.ask(What::queryEvent, event).status == CUDA_ERROR_NOT_READY);
  user.ask(What::release);
  CHECK(owner.ask(What::synchronize, event).status == CUDA_SUCCESS);
  CHECK(user.ask(What::queryEvent, opened).status == CUDA_SUCCESS);
}

TEST_CASE("a wait for an event ends when the process that recorded it dies") {
  Peer user;
  std::uint64_t opened = 0;
  {
    Peer owner;
    const auto event = owner.ask(What::createEvent).number;
    opened = user.ask(What::openEvent, 0, 0, owner.ask(What::exportEvent, event).handle).number;
    CHECK(owner.ask(What::recordEvent, event).status == CUDA_SUCCESS);
    CHECK(user.ask(What::queryEvent, opened).status == CUDA_ERROR_NOT_READY);
  }
  CHECK(user.ask(What::waitEvent, opened).status == CUDA_SUCCESS);
  CHECK(user.ask(What::synchronizeStream).status == CUDA_SUCCESS);
}
