// collectives RANKS: runs collectives of NCCL in a process per rank, with a GPU each, and compares
// the results with what they should be.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

/// Ends the program if a call fails: later results would not be valid.
static void must(bool holds, const char* call, const char* reason) {
  if (holds) return;
  std::printf("%s: %s\n", call, reason);
  std::fflush(stdout);
  std::_Exit(2);
}
static void must(cudaError_t status, const char* call) {
  must(status == cudaSuccess, call, cudaGetErrorString(status));
}
static void must(ncclResult_t status, const char* call) {
  must(status == ncclSuccess, call, ncclGetLastError(nullptr));
}
#define MUST(...) must(__VA_ARGS__, #__VA_ARGS__)

/// Shared by the ranks.
struct Scene {
  ncclUniqueId id;
  std::atomic<int> cases{0}, wrong{0};
};

class Rank {
 public:
  Rank(Scene& scene, int rank, int ranks) : scene_(scene), rank_(rank), ranks_(ranks) {
    MUST(cudaSetDevice(rank));
    MUST(cudaStreamCreate(&stream_));
    MUST(ncclCommInitRank(&communicator_, ranks, scene.id, rank));
  }
  ~Rank() {
    MUST(ncclCommDestroy(communicator_));
    MUST(cudaStreamDestroy(stream_));
  }

  void all() {
    for (const std::size_t count : {1, 1000, 100'000}) {
      reductions<float>(ncclFloat32, count);
      reductions<std::int64_t>(ncclInt64, count);
      moves(count);
    }
    reductions<double>(ncclFloat64, 1000);
    allReduceOfHalves(1000);
    registeredMemory(10'000);
    capturedGraph(1000);
    splitCommunicator(1000);
  }

 private:
  template <class Value>
  Value value(int rank, std::size_t i) const {
    return static_cast<Value>((i % 1000) * 3 + rank * 7 + 1);
  }

  /// A case: `run` gets device memory with `given` values of this rank, and room for `expected`.
  template <class Value>
  void check(const std::string& name, std::size_t given, const std::vector<Value>& expected,
             const std::function<void(const Value*, Value*)>& run,
             const std::function<Value(int, std::size_t)>& input) {
    Value *in = nullptr, *out = nullptr;
    MUST(cudaMalloc(&in, given * sizeof(Value)));
    MUST(cudaMalloc(&out, expected.size() * sizeof(Value)));
    fill<Value>(in, given, input);
    MUST(cudaMemset(out, 0xff, expected.size() * sizeof(Value)));
    run(in, out);
    expect(name, out, expected);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
  }

  /// Gives the memory the values of this rank.
  template <class Value>
  void fill(Value* memory, std::size_t count, const std::function<Value(int, std::size_t)>& input) {
    std::vector<Value> host(count);
    for (std::size_t i = 0; i < count; ++i) host[i] = input(rank_, i);
    MUST(cudaMemcpyAsync(memory, host.data(), count * sizeof(Value), cudaMemcpyHostToDevice,
                         stream_));
    MUST(cudaStreamSynchronize(stream_));
  }

  /// Compares the memory once the stream has finished.
  template <class Value>
  void expect(const std::string& name, const Value* memory, const std::vector<Value>& expected) {
    MUST(cudaStreamSynchronize(stream_));
    std::vector<Value> result(expected.size());
    MUST(cudaMemcpy(result.data(), memory, result.size() * sizeof(Value), cudaMemcpyDeviceToHost));
    judge(name, std::memcmp(result.data(), expected.data(), result.size() * sizeof(Value)) == 0);
  }

  void judge(const std::string& name, bool right) {
    ++scene_.cases;
    if (right) return;
    ++scene_.wrong;
    std::printf("rank %d: %s: wrong result\n", rank_, name.c_str());
  }

  template <class Value>
  std::vector<Value> combined(std::size_t count, const std::function<Value(Value, Value)>& combine,
                              const std::function<Value(int, std::size_t)>& input) const {
    std::vector<Value> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = input(0, i);
      for (int rank = 1; rank < ranks_; ++rank) result[i] = combine(result[i], input(rank, i));
    }
    return result;
  }

  template <class Value>
  void reductions(ncclDataType_t type, std::size_t count) {
    const std::function<Value(int, std::size_t)> input = [this](int rank, std::size_t i) {
      return value<Value>(rank, i);
    };
    const std::string size = " of " + std::to_string(count) + ", type " + std::to_string(type);
    struct Case {
      const char* name;
      ncclRedOp_t operation;
      std::function<Value(Value, Value)> combine;
    };
    for (const Case& one :
         {Case{"sum", ncclSum, [](Value a, Value b) { return a + b; }},
          Case{"product", ncclProd, [](Value a, Value b) { return a * b; }},
          Case{"maximum", ncclMax, [](Value a, Value b) { return a > b ? a : b; }}})
      check<Value>(
          std::string("all-reduce by ") + one.name + size, count,
          combined<Value>(count, one.combine, input),
          [&](const Value* in, Value* out) {
            MUST(ncclAllReduce(in, out, count, type, one.operation, communicator_, stream_));
          },
          input);
    const auto sum = [](Value a, Value b) { return a + b; };
    const auto whole = combined<Value>(count * ranks_, sum, input);
    check<Value>(
        "reduce-scatter" + size, count * ranks_,
        {whole.begin() + rank_ * count, whole.begin() + (rank_ + 1) * count},
        [&](const Value* in, Value* out) {
          MUST(ncclReduceScatter(in, out, count, type, ncclSum, communicator_, stream_));
        },
        input);
  }

  /// Not send and receive: their blocks have 640 threads, which is too many for NCCL's PTX.
  void moves(std::size_t count) {
    using Value = std::uint8_t;
    const std::function<Value(int, std::size_t)> input = [this](int rank, std::size_t i) {
      return value<Value>(rank, i);
    };
    const std::string size = " of " + std::to_string(count) + " bytes";
    std::vector<Value> last(count), all;
    for (std::size_t i = 0; i < count; ++i) last[i] = input(ranks_ - 1, i);
    for (int rank = 0; rank < ranks_; ++rank)
      for (std::size_t i = 0; i < count; ++i) all.push_back(input(rank, i));
    check<Value>(
        "broadcast" + size, count, last,
        [&](const Value* in, Value* out) {
          MUST(ncclBroadcast(in, out, count, ncclUint8, ranks_ - 1, communicator_, stream_));
        },
        input);
    check<Value>(
        "all-gather" + size, count, all,
        [&](const Value* in, Value* out) {
          MUST(ncclAllGather(in, out, count, ncclUint8, communicator_, stream_));
        },
        input);
  }

  void allReduceOfHalves(std::size_t count) {
    const std::function<__half(int, std::size_t)> input = [](int rank, std::size_t i) {
      return __float2half(static_cast<float>(i % 100 + rank));
    };
    check<__half>(
        "all-reduce of halves", count,
        combined<__half>(
            count,
            [](__half a, __half b) { return __float2half(__half2float(a) + __half2float(b)); },
            input),
        [&](const __half* in, __half* out) {
          MUST(ncclAllReduce(in, out, count, ncclFloat16, ncclSum, communicator_, stream_));
        },
        input);
  }

  std::vector<float> sums(std::size_t count) const {
    return combined<float>(
        count, [](float a, float b) { return a + b; }, floats_);
  }

  /// Memory that NCCL allocates, and that the other ranks reach through exported handles.
  void registeredMemory(std::size_t count) {
    float* memory = nullptr;
    void* handle = nullptr;
    MUST(ncclMemAlloc(reinterpret_cast<void**>(&memory), count * sizeof(float)));
    MUST(ncclCommRegister(communicator_, memory, count * sizeof(float), &handle));
    fill(memory, count, floats_);
    MUST(ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, communicator_, stream_));
    expect("all-reduce of registered memory", memory, sums(count));
    MUST(ncclCommDeregister(communicator_, handle));
    MUST(ncclMemFree(memory));
  }

  void capturedGraph(std::size_t count) {
    float *in = nullptr, *out = nullptr;
    MUST(cudaMalloc(&in, count * sizeof(float)));
    MUST(cudaMalloc(&out, count * sizeof(float)));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    MUST(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(in, out, count, ncclFloat32, ncclSum, communicator_, stream_));
    MUST(cudaStreamEndCapture(stream_, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) {
      fill(in, count, floats_);
      MUST(cudaMemsetAsync(out, 0, count * sizeof(float), stream_));
      MUST(cudaGraphLaunch(executable, stream_));
      expect("all-reduce in a graph", out, sums(count));
    }
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(in));
    MUST(cudaFree(out));
  }

  /// All ranks again, in reverse.
  void splitCommunicator(std::size_t count) {
    ncclComm_t reversed = nullptr;
    MUST(ncclCommSplit(communicator_, 0, ranks_ - rank_, &reversed, nullptr));
    int rank = -1;
    MUST(ncclCommUserRank(reversed, &rank));
    judge("rank in the split communicator", rank == ranks_ - 1 - rank_);
    float* memory = nullptr;
    MUST(cudaMalloc(&memory, count * sizeof(float)));
    fill(memory, count, floats_);
    MUST(ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, reversed, stream_));
    expect("all-reduce in the split communicator", memory, sums(count));
    MUST(cudaFree(memory));
    MUST(ncclCommDestroy(reversed));
  }

  Scene& scene_;
  const int rank_, ranks_;
  const std::function<float(int, std::size_t)> floats_ = [this](int rank, std::size_t i) {
    return value<float>(rank, i);
  };
  cudaStream_t stream_ = nullptr;
  ncclComm_t communicator_ = nullptr;
};

/// Whether all processes end without an error. The first error ends the others, which would wait.
static bool runAll(Scene& scene, int ranks) {
  int ready[2];
  if (pipe(ready) != 0) return false;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    char go = 0;
    if (rank == 0) {
      MUST(ncclGetUniqueId(&scene.id));
      for (int other = 1; other < ranks; ++other) must(write(ready[1], &go, 1) == 1, "write", "");
    } else {
      must(read(ready[0], &go, 1) == 1, "read", "");
    }
    Rank(scene, rank, ranks).all();
    std::exit(0);
  }
  bool good = true;
  for (int status = 0; wait(&status) > 0;) {
    if (good && status != 0)
      for (const pid_t process : processes) kill(process, SIGKILL);
    good = good && status == 0;
  }
  return good;
}

int main(int, char** arguments) {
  void* shared =
      mmap(nullptr, sizeof(Scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Scene& scene = *new (shared) Scene;
  const bool ended = runAll(scene, std::atoi(arguments[1]));
  std::printf("%d cases, %d wrong\n", scene.cases.load(), scene.wrong.load());
  return ended && scene.wrong == 0 ? 0 : 1;
}
