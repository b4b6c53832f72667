// Checkpoints of the calling process, and restorations onto other GPUs. Only the simulated driver
// can be told how many GPUs there are and what memory they have.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kContext = 4 * kMebibyte;

CUresult lock(unsigned milliseconds = 0) {
  CUcheckpointLockArgs args{};
  args.timeoutMs = milliseconds;
  return DRIVER(cuCheckpointProcessLock)(getpid(), &args);
}
CUresult checkpoint() { return DRIVER(cuCheckpointProcessCheckpoint)(getpid(), nullptr); }
CUresult unlock() { return DRIVER(cuCheckpointProcessUnlock)(getpid(), nullptr); }

CUresult restore(std::vector<CUcheckpointGpuPair> pairs = {}) {
  CUcheckpointRestoreArgs args{};
  args.gpuPairs = pairs.data();
  args.gpuPairsCount = static_cast<unsigned>(pairs.size());
  return DRIVER(cuCheckpointProcessRestore)(getpid(), &args);
}

CUprocessState state() {
  auto state = CU_PROCESS_STATE_FAILED;
  OK(DRIVER(cuCheckpointProcessGetState)(getpid(), &state));
  return state;
}

/// The UUID of a simulated GPU, which this process may not see.
CUuuid uuid(char index) {
  CUuuid uuid{};
  const unsigned char stem[] = {0x73, 0x69, 0x6d, 0x75, 0x6c, 0x61, 0x40, 0x64, 0xa9, 0x70, 0x75};
  std::memcpy(uuid.bytes, stem, sizeof stem);
  uuid.bytes[15] = index;
  return uuid;
}

/// Runs `test` in a child on a machine with GPUs of 256, 256 and 512 MiB.
template <class Test>
void onMachine(const char* visible, Test&& test) {
  unit::inChild([&] {
    char file[] = "/tmp/simulator-checkpoint-XXXXXX";
    close(mkstemp(file));
    setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", file, 1);
    setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "3", 1);
    setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "256MiB,256MiB,512MiB", 1);
    setenv("NVIDIA_VIRTUAL_SIMULATED_CONTEXT", "4MiB", 1);
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    test();
    unlink(file);
  });
}

/// Bytes that this process holds of a GPU, as NVML says.
std::size_t held(unsigned gpu) {
  struct ProcessInfo {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId;
    unsigned computeInstanceId;
  };
  static void* const library =
      dlopen(unit::argument(1, "the path of the simulated NVML"), RTLD_NOW);
  REQUIRE(library != nullptr);
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto handle =
      reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
  const auto list = reinterpret_cast<int (*)(void*, unsigned*, ProcessInfo*)>(
      dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  void* device = nullptr;
  ProcessInfo found[16];
  unsigned count = 16;
  CHECK(init() == 0);
  CHECK(handle(gpu, &device) == 0);
  CHECK(list(device, &count, found) == 0);
  for (unsigned i = 0; i < count; ++i)
    if (found[i].pid == static_cast<unsigned>(getpid())) return found[i].usedGpuMemory;
  return 0;
}

TEST_CASE("a checkpoint has an order of states, and refuses any other") {
  unit::inChild([] {
    auto none = CU_PROCESS_STATE_FAILED;
    EXPECT(CUDA_ERROR_NOT_INITIALIZED, DRIVER(cuCheckpointProcessGetState)(getpid(), &none));
    usePrimaryContext();
    CHECK(state() == CU_PROCESS_STATE_RUNNING);
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, checkpoint());
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, restore());
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, unlock());
    OK(lock());
    CHECK(state() == CU_PROCESS_STATE_LOCKED);
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, lock());
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, restore());
    OK(checkpoint());
    CHECK(state() == CU_PROCESS_STATE_CHECKPOINTED);
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, checkpoint());
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, unlock());
    OK(restore());
    CHECK(state() == CU_PROCESS_STATE_LOCKED);
    OK(unlock());
    CHECK(state() == CU_PROCESS_STATE_RUNNING);
    CUcheckpointLockArgs args{};
    args.reserved1[6] = 1;
    EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCheckpointProcessLock)(getpid(), &args));
    EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCheckpointProcessGetState)(getpid(), nullptr));
    CUdeviceptr memory = 0;
    OK(DRIVER(cuMemAlloc_v2)(&memory, 4));
  });
}

TEST_CASE("a call waits while the process is locked") {
  unit::inChild([] {
    const CUcontext context = usePrimaryContext();
    OK(lock());
    std::atomic<bool> begun{false}, ended{false};
    std::thread caller([&] {
      begun = true;
      OK(DRIVER(cuCtxSetCurrent)(context));
      ended = true;
    });
    while (!begun) std::this_thread::yield();
    OK(checkpoint());
    OK(restore());
    CHECK(!ended);
    OK(unlock());
    caller.join();
    CHECK(ended);
  });
}

TEST_CASE("a process is not locked before its work has ended, and goes on after the timeout") {
  unit::inChild([] {
    usePrimaryContext();
    CUstream stream = nullptr;
    void* host = nullptr;
    OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(DRIVER(cuMemHostAlloc)(&host, 4, 0));
    auto* const word = static_cast<unsigned*>(host);
    *word = 0;
    OK(DRIVER(cuStreamWaitValue32_v2)(stream, reinterpret_cast<CUdeviceptr>(host), 1,
                                      CU_STREAM_WAIT_VALUE_EQ));
    EXPECT(CUDA_ERROR_NOT_READY, lock(20));
    CHECK(state() == CU_PROCESS_STATE_RUNNING);
    std::thread writer([&] { std::atomic_ref(*word).store(1); });
    OK(lock());
    writer.join();
    OK(unlock());
  });
}

TEST_CASE("a process moves to another GPU with its memory, code, streams and graphs") {
  onMachine("0,1,2", [] {
    usePrimaryContext();
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
    char address[32] = {};
    OK(DRIVER(cuDeviceGetPCIBusId)(address, sizeof address, 0));
    OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    OK(DRIVER(cuMemAlloc_v2)(&memory, 8 * kMebibyte));
    OK(DRIVER(cuMemsetD32_v2)(memory, 7, 2 * kMebibyte));
    const CUfunction store = functionOf(kKernels, "store");
    CUdeviceptr at = memory + 4;
    unsigned value = 0;
    void* parameters[] = {&at, &value};
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    OK(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    value = 5;
    OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    OK(DRIVER(cuStreamEndCapture)(stream, &graph));
    OK(DRIVER(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    const std::size_t all = held(0);
    CHECK(all >= 8 * kMebibyte + kContext);
    for (char here = 0, there = 1, i = 0; i < 10; ++i, std::swap(here, there)) {
      OK(lock());
      OK(checkpoint());
      CHECK(held(0) + held(1) == 0);
      OK(restore({{uuid(here), uuid(there)}, {uuid(there), uuid(here)}, {uuid(2), uuid(2)}}));
      CHECK(held(there) == all);
      CHECK(held(here) == 0);
      OK(unlock());
      CUuuid own{};
      OK(DRIVER(cuDeviceGetUuid_v2)(&own, 0));
      CHECK(own.bytes[15] == there);
      char now[32] = {};
      OK(DRIVER(cuDeviceGetPCIBusId)(now, sizeof now, 0));
      CHECK(std::string(now) == address);
      OK(DRIVER(cuMemsetD32_v2)(at, 0, 1));
      OK(DRIVER(cuCtxSynchronize)());
      OK(DRIVER(cuGraphLaunch)(executable, stream));
      OK(DRIVER(cuStreamSynchronize)(stream));
      unsigned words[3] = {};
      OK(DRIVER(cuMemcpyDtoH_v2)(words, memory, sizeof words));
      CHECK(words[0] == 7);
      CHECK(words[1] == 5);
      CHECK(words[2] == 7);
    }
    OK(DRIVER(cuMemFree_v2)(memory));
    CHECK(held(0) == all - 8 * kMebibyte);
    OK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
    CHECK(held(0) == 0);
  });
}

TEST_CASE("a restoration names every visible GPU once, and another one of the same memory") {
  onMachine("0,1", [] {
    usePrimaryContext();
    OK(lock());
    OK(checkpoint());
    EXPECT(CUDA_ERROR_INVALID_VALUE, restore({{uuid(0), uuid(1)}}));
    EXPECT(CUDA_ERROR_INVALID_VALUE, restore({{uuid(0), uuid(1)}, {uuid(1), uuid(1)}}));
    EXPECT(CUDA_ERROR_INVALID_VALUE, restore({{uuid(0), uuid(2)}, {uuid(1), uuid(1)}}));
    EXPECT(CUDA_ERROR_INVALID_VALUE, restore({{uuid(0), uuid(9)}, {uuid(1), uuid(1)}}));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           restore({{uuid(0), uuid(1)}, {uuid(1), uuid(0)}, {uuid(2), uuid(2)}}));
    CHECK(state() == CU_PROCESS_STATE_CHECKPOINTED);
    OK(restore({{uuid(0), uuid(1)}, {uuid(1), uuid(0)}}));
    OK(unlock());
    CHECK(held(0) == 0);
    CHECK(held(1) == kContext);
  });
}

TEST_CASE("a process returns only to GPUs that it sees") {
  onMachine("0", [] {
    usePrimaryContext();
    OK(lock());
    OK(checkpoint());
    EXPECT(CUDA_ERROR_INVALID_VALUE, restore({{uuid(0), uuid(1)}}));
    OK(restore());
    OK(unlock());
    CHECK(held(0) == kContext);
  });
}

TEST_CASE("managed memory refuses a checkpoint, and the process goes on") {
  onMachine("0", [] {
    usePrimaryContext();
    CUdeviceptr managed = 0;
    OK(DRIVER(cuMemAllocManaged)(&managed, 4, CU_MEM_ATTACH_GLOBAL));
    OK(lock());
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, checkpoint());
    CHECK(state() == CU_PROCESS_STATE_LOCKED);
    OK(unlock());
    OK(DRIVER(cuMemFree_v2)(managed));
  });
}

TEST_CASE("a restoration without room fails for ever") {
  onMachine("0,1", [] {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t other = fork();
    if (other == 0) {
      setenv("CUDA_VISIBLE_DEVICES", "1", 1);
      usePrimaryContext();
      CUdeviceptr memory = 0;
      OK(DRIVER(cuMemAlloc_v2)(&memory, 224 * kMebibyte));
      if (write(ready[1], "", 1) == 1) pause();
      std::_Exit(1);
    }
    usePrimaryContext();
    CUdeviceptr memory = 0;
    OK(DRIVER(cuMemAlloc_v2)(&memory, 64 * kMebibyte));
    OK(lock());
    OK(checkpoint());
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1);
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, restore({{uuid(0), uuid(1)}, {uuid(1), uuid(0)}}));
    CHECK(state() == CU_PROCESS_STATE_FAILED);
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, restore());
  });
}

}  // namespace
