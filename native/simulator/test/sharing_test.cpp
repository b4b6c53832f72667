// Processes that share the simulated GPUs of a node.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kTotal = 256 * kMebibyte;
constexpr std::size_t kContext = 4 * kMebibyte;

struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
struct Sample {
  unsigned pid;
  unsigned long long timeStamp;
  unsigned smUtil, memUtil, encUtil, decUtil;
};

/// A process that uses the GPU as it is ordered.
class User {
 public:
  User() {
    REQUIRE(pipe(orders_) == 0);
    REQUIRE(pipe(answers_) == 0);
    pid = fork();
    if (pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(orders_[1]);
    usePrimaryContext();
    obey();
    std::_Exit(0);
  }

  CUresult allocate(std::size_t bytes) { return static_cast<CUresult>(ask('a', bytes)); }
  std::size_t free() { return ask('f', 0); }
  CUresult compute(std::size_t milliseconds) {
    return static_cast<CUresult>(ask('k', milliseconds));
  }
  void kill() const { ::kill(pid, SIGKILL); }

  pid_t pid = 0;

 private:
  struct Order {
    char what;
    std::size_t amount;
  };

  std::size_t ask(char what, std::size_t amount) {
    const Order order{what, amount};
    std::size_t answer = ~std::size_t{0};
    REQUIRE(write(orders_[1], &order, sizeof order) == sizeof order);
    REQUIRE(read(answers_[0], &answer, sizeof answer) == sizeof answer);
    return answer;
  }

  void obey() {
    std::vector<CUdeviceptr> kept;
    for (Order order{}; read(orders_[0], &order, sizeof order) == sizeof order;) {
      const std::size_t answer = perform(order);
      if (write(answers_[1], &answer, sizeof answer) != sizeof answer) return;
    }
  }

  static std::size_t perform(const Order& order) {
    CUdeviceptr address = 0;
    std::size_t free = 0, total = 0;
    switch (order.what) {
      case 'a': return DRIVER(cuMemAlloc_v2)(&address, order.amount);
      case 'f': return DRIVER(cuMemGetInfo_v2)(&free, &total), free;
      default: return spin(order.amount);
    }
  }

  static std::size_t spin(std::size_t milliseconds) {
    const CUfunction sleep = functionOf(kSleep, "sleep");
    unsigned count = static_cast<unsigned>(milliseconds);
    void* parameters[] = {&count};
    const CUresult launched =
        DRIVER(cuLaunchKernel)(sleep, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    return launched != CUDA_SUCCESS ? launched : DRIVER(cuCtxSynchronize)();
  }

  static constexpr const char* kSleep = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry sleep(.param .u32 count)
{
  .reg .pred %p<2>;
  .reg .u32 %r<3>;
  ld.param.u32 %r1, [count];
loop:
  nanosleep.u32 1000000;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra loop;
  ret;
})";

  int orders_[2] = {-1, -1};
  int answers_[2] = {-1, -1};
};

/// The simulated NVML.
class Nvml {
 public:
  Nvml() : library_(dlopen(unit::argument(1, "the path of the simulated NVML"), RTLD_NOW)) {
    REQUIRE(library_ != nullptr);
    CHECK(function<int()>("nvmlInit_v2")() == 0);
    CHECK(function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_) == 0);
  }

  /// Bytes that a process holds; -1 when it is not named.
  long long held(pid_t pid) {
    std::vector<ProcessInfo> found(16);
    unsigned count = found.size();
    CHECK(function<int(void*, unsigned*, ProcessInfo*)>("nvmlDeviceGetComputeRunningProcesses_v3")(
              device_, &count, found.data()) == 0);
    for (unsigned i = 0; i < count; ++i) {
      if (found[i].pid == static_cast<unsigned>(pid))
        return static_cast<long long>(found[i].usedGpuMemory);
    }
    return -1;
  }

  /// Percent of the time since the last question; -1 when it did nothing.
  int busy(pid_t pid) {
    std::vector<Sample> found(16);
    unsigned count = found.size();
    const auto ask = function<int(void*, Sample*, unsigned*, unsigned long long)>(
        "nvmlDeviceGetProcessUtilization");
    if (ask(device_, found.data(), &count, 0) != 0) return -1;
    for (unsigned i = 0; i < count; ++i) {
      if (found[i].pid == static_cast<unsigned>(pid)) return static_cast<int>(found[i].smUtil);
    }
    return -1;
  }

 private:
  template <class Type>
  Type* function(const char* name) {
    return reinterpret_cast<Type*>(dlsym(library_, name));
  }

  void* library_;
  void* device_ = nullptr;
};

TEST_CASE("what a process holds of a GPU is missing to the others until it ends") {
  char state[] = "/tmp/simulator-state-XXXXXX";
  const int file = mkstemp(state);
  setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "256MiB", 1);
  setenv("NVIDIA_VIRTUAL_SIMULATED_CONTEXT", "4MiB", 1);
  setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", state, 1);
  User greedy, other;
  Nvml nvml;
  CHECK((greedy.free() == kTotal - 2 * kContext || other.free() == kTotal - 2 * kContext));
  OK(greedy.allocate(200 * kMebibyte));
  CHECK(other.free() == 56 * kMebibyte - 2 * kContext);
  EXPECT(CUDA_ERROR_OUT_OF_MEMORY, other.allocate(64 * kMebibyte));
  CHECK(nvml.held(greedy.pid) == static_cast<long long>(200 * kMebibyte + kContext));
  CHECK(nvml.held(other.pid) == static_cast<long long>(kContext));
  CHECK(nvml.held(getpid()) == -1);

  CHECK(nvml.busy(other.pid) == -1);
  OK(other.compute(50));
  CHECK(nvml.busy(other.pid) > 0);
  CHECK(nvml.busy(greedy.pid) == -1);

  // The memory of a process is free once it has ended, even before its parent waits for it.
  greedy.kill();
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(greedy.pid), &ended, WEXITED | WNOWAIT);
  OK(other.allocate(200 * kMebibyte));
  CHECK(nvml.held(greedy.pid) == -1);
  waitpid(greedy.pid, nullptr, 0);

  // The variable may hold the descriptor of a file that was opened with other rights.
  setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", std::to_string(file).c_str(), 1);
  User third;
  CHECK(third.free() == 56 * kMebibyte - 2 * kContext);

  setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", "/proc/version", 1);
  EXPECT(CUDA_ERROR_OPERATING_SYSTEM, DRIVER(cuInit)(0));
  for (const User* user : {&other, &third}) {
    user->kill();
    waitpid(user->pid, nullptr, 0);
  }
  unlink(state);
}

}  // namespace
