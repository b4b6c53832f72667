// Random calls, many of them wrong: each returns its own error, also where a call is enqueued. Two processes make the same calls, and one of them waits at each.
// conformance: flags=-lcuda judges=itself
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "processes.h"
#include "show_driver.h"

constexpr int sequences = 12, calls = 150;

const char* text = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 to)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
)";

struct Memory {
  CUdeviceptr at;
  std::size_t bytes;
};

class Sequence {
 public:
  explicit Sequence(unsigned seed) : random_(seed) {
    for (CUcontext& context : contexts_) {
      EXPECT(cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS);
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      EXPECT(cuModuleLoadData(&module, text) == CUDA_SUCCESS);
      EXPECT(cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS);
      functions_.push_back(function);
    }
    EXPECT(cuMemAlloc(&word_, 4) == CUDA_SUCCESS);
    EXPECT(cuMemHostAlloc(&pinned_, pageable_.size(), CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS);
  }
  ~Sequence() {
    cuMemFreeHost(pinned_);
    for (CUgraphExec exec : execs_) cuGraphExecDestroy(exec);
    for (CUgraph graph : graphs_) cuGraphDestroy(graph);
    for (CUcontext context : contexts_) cuCtxDestroy(context);
  }
  Sequence(const Sequence&) = delete;

  CUresult next(std::string& name) {
    const Choice& choice = choices_[pick(choices_.size())];
    name = choice.name;
    return choice.call();
  }

 private:
  struct Choice {
    const char* name;
    std::function<CUresult()> call;
  };

  std::size_t pick(std::size_t below) { return random_() % below; }
  bool chance(unsigned percent) { return pick(100) < percent; }
  template <class T>
  T any(const std::vector<T>& all) {
    return all.empty() || chance(3) ? T{} : all[pick(all.size())];
  }
  template <class T, class Make>
  CUresult make(std::vector<T>& all, const Make& call) {
    T made{};
    const CUresult status = call(&made);
    if (status == CUDA_SUCCESS) all.push_back(made);
    return status;
  }
  template <class Allocate>
  CUresult allocate(const Allocate& call) {
    const std::size_t bytes = 1024 * pick(64);
    CUdeviceptr at = 0;
    const CUresult status = call(&at, bytes);
    if (status == CUDA_SUCCESS) memory_.push_back({at, bytes});
    return status;
  }
  /// The object is gone if the call succeeds. The first `kept` objects stay.
  template <class T, class End>
  CUresult end(std::vector<T>& all, std::size_t kept, const End& call) {
    if (all.size() <= kept) return CUDA_SUCCESS;
    const std::size_t at = kept + pick(all.size() - kept);
    const CUresult status = call(all[at]);
    if (status == CUDA_SUCCESS) all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    return status;
  }
  /// So that nothing runs which uses the memory.
  template <class End>
  CUresult endMemory(const End& call) {
    for (CUcontext context : contexts_) {
      cuCtxPushCurrent(context);
      cuCtxSynchronize();
      cuCtxPopCurrent(&context);
    }
    const std::size_t offset = chance(90) ? 0 : 256;
    return end(memory_, 0, [&](const Memory& memory) { return call(memory.at + offset); });
  }
  CUstream stream() { return any(streams_); }
  std::size_t bytes() { return chance(70) ? 4 * (1 + pick(200)) : chance(50) ? 1 + pick(5000) : 0; }
  CUdeviceptr address() {
    if (memory_.empty() || chance(4)) return 0x1234;
    const Memory& memory = memory_[pick(memory_.size())];
    return memory.at + (chance(60) ? 0 : chance(50) ? 4 * pick(64) : pick(memory.bytes + 64));
  }
  CUresult launch() {
    void* parameters[] = {&word_};
    return cuLaunchKernel(any(functions_), chance(92) ? 1 + pick(3) : 0, 1, 1, chance(90) ? 1 + pick(64) : 1025, 1, 1, chance(90) ? 0 : 40000 + 20000 * pick(2), stream(), parameters, nullptr);
  }
  CUresult set() {
    const auto attribute = static_cast<CUfunction_attribute>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES + pick(3));
    return cuFuncSetAttribute(any(functions_), attribute, chance(50) ? 1024 * static_cast<int>(pick(100)) : chance(50) ? 200000 : -1);
  }
  CUresult beginCapture() {
    if (chance(75)) return CUDA_SUCCESS;
    captured_ = stream();
    return cuStreamBeginCapture(captured_, static_cast<CUstreamCaptureMode>(pick(3)));
  }
  /// NVIDIA's driver reads the memory of a destroyed stream if a capture is ended by it.
  CUresult destroy(CUstream stream) {
    if (captured_ == stream) captured_ = nullptr;
    return cuStreamDestroy(stream);
  }
  CUresult endCapture() {
    CUgraph graph = nullptr;
    const CUresult status = cuStreamEndCapture(chance(85) ? captured_ : stream(), &graph);
    if (graph != nullptr) graphs_.push_back(graph);
    return status;
  }
  void* host() { return chance(50) ? pinned_ : pageable_.data(); }

  std::mt19937 random_;
  CUcontext contexts_[2] = {};
  std::vector<CUfunction> functions_;
  std::vector<CUstream> streams_{nullptr, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
  std::vector<CUevent> events_;
  std::vector<Memory> memory_;
  std::vector<CUgraph> graphs_;
  std::vector<CUgraphExec> execs_;
  std::vector<char> pageable_ = std::vector<char>(8192);
  void* pinned_ = nullptr;
  CUdeviceptr word_ = 0;
  CUstream captured_ = nullptr;

  const std::vector<Choice> choices_{
      {"cuCtxSetCurrent", [this] { return cuCtxSetCurrent(contexts_[pick(2)]); }},
      {"cuStreamCreate", [this] { return make(streams_, [this](CUstream* to) { return cuStreamCreate(to, pick(3)); }); }},
      {"cuStreamDestroy", [this] { return end(streams_, 5, [this](CUstream one) { return destroy(one); }); }},
      {"cuEventCreate", [this] { return make(events_, [this](CUevent* to) { return cuEventCreate(to, pick(4)); }); }},
      {"cuEventDestroy", [this] { return end(events_, 3, [](CUevent one) { return cuEventDestroy(one); }); }},
      {"cuEventRecord", [this] { return cuEventRecord(any(events_), stream()); }},
      {"cuEventRecord", [this] { return cuEventRecord(any(events_), stream()); }},
      {"cuEventRecordWithFlags", [this] { return cuEventRecordWithFlags(any(events_), stream(), pick(3)); }},
      {"cuStreamWaitEvent", [this] { return cuStreamWaitEvent(stream(), any(events_), pick(3)); }},
      {"cuMemAlloc", [this] { return allocate([](CUdeviceptr* at, std::size_t bytes) { return cuMemAlloc(at, bytes); }); }},
      {"cuMemAllocAsync", [this] { return allocate([this](CUdeviceptr* at, std::size_t bytes) { return cuMemAllocAsync(at, bytes, stream()); }); }},
      {"cuMemAllocManaged", [this] { return allocate([this](CUdeviceptr* at, std::size_t bytes) { return cuMemAllocManaged(at, bytes, pick(4)); }); }},
      {"cuMemFree", [this] { return endMemory([](CUdeviceptr at) { return cuMemFree(at); }); }},
      {"cuMemFreeAsync", [this] { return endMemory([this](CUdeviceptr at) { return cuMemFreeAsync(at, stream()); }); }},
      {"cuMemcpyHtoDAsync", [this] { return cuMemcpyHtoDAsync(address(), host(), bytes(), stream()); }},
      {"cuMemcpyDtoHAsync", [this] { return cuMemcpyDtoHAsync(host(), address(), bytes(), stream()); }},
      {"cuMemcpyDtoDAsync", [this] { return cuMemcpyDtoDAsync(address(), address(), bytes(), stream()); }},
      {"cuMemcpyDtoD", [this] { return cuMemcpyDtoD(address(), address(), bytes()); }},
      {"cuMemcpyHtoD", [this] { return cuMemcpyHtoD(address(), host(), bytes()); }},
      {"cuMemsetD8Async", [this] { return cuMemsetD8Async(address(), 1, bytes(), stream()); }},
      {"cuMemsetD32Async", [this] { return cuMemsetD32Async(address(), 1, bytes() / 4, stream()); }},
      {"cuMemsetD2D32Async", [this] { return cuMemsetD2D32Async(address(), 4 * pick(64), 1, pick(64), pick(16), stream()); }},
      {"cuLaunchKernel", [this] { return launch(); }},
      {"cuLaunchKernel", [this] { return launch(); }},
      {"cuFuncSetAttribute", [this] { return set(); }},
      {"cuStreamBeginCapture", [this] { return beginCapture(); }},
      {"cuStreamEndCapture", [this] { return endCapture(); }},
      {"cuGraphInstantiateWithFlags", [this] { return make(execs_, [this](CUgraphExec* to) { return cuGraphInstantiateWithFlags(to, any(graphs_), pick(2)); }); }},
      {"cuGraphLaunch", [this] { return cuGraphLaunch(any(execs_), stream()); }},
      {"cuStreamWriteValue32", [this] { return cuStreamWriteValue32(stream(), address(), 5, pick(3)); }},
      {"cuStreamSynchronize", [this] { return cuStreamSynchronize(stream()); }},
      {"cuCtxSynchronize", [this] { return cuCtxSynchronize(); }},
  };
};

static std::vector<CUresult> results(std::vector<std::string>& names) {
  std::vector<CUresult> all;
  for (unsigned seed = 0; seed < sequences; ++seed) {
    Sequence sequence(seed);
    for (int i = 0; i < calls; ++i) all.push_back(sequence.next(names.emplace_back()));
  }
  return all;
}

int main() {
  Processes processes;
  // Only our driver knows the variable.
  if (processes.isChild()) setenv("NVIDIA_VIRTUAL_SYNCHRONOUS", "1", 1);
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  std::vector<std::string> names;
  const std::vector<CUresult> all = results(names);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (processes.isChild()) {
      processes.send(all[i]);
      continue;
    }
    const auto waited = processes.receive<CUresult>();
    if (waited == all[i] || ++wrongExpectations > 20) continue;
    std::printf("sequence %zu, call %zu: %s returned %s, and %s where each call waits\n", i / calls, i % calls, names[i].c_str(), resultName(all[i]), resultName(waited));
  }
  return processes.end();
}
