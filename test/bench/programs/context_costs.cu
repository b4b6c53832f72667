// Device memory that calls use beyond the requested size: natively, in one process per case.
//   context_costs                all cases, as lines of JSON
//   context_costs CASE [NUMBER]  one of them
// Build with -rdc=true -lcudadevrt -lcuda.
#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

constexpr size_t kMiB = 1 << 20;
constexpr size_t kVariable = 64 * kMiB;

__device__ char variable[kVariable];

__global__ void child(int* out) { *out = 1; }
__global__ void parent(int* out) { child<<<1, 1>>>(out); }
__global__ void print(int* out) { printf("%d\n", *out); }
__global__ void keep(void** out) { *out = malloc(16); }
__global__ void use(char* out) { *out = variable[7]; }
__global__ void deep(int* out, int index) {
  int local[4096];
  for (int i = 0; i < 4096; ++i) local[(i * index) & 4095] = i;
  *out = local[index & 4095];
}

namespace {

void check(CUresult status, const char* text) {
  if (status == CUDA_SUCCESS) return;
  std::printf("{\"error\": %d, \"call\": \"%s\"}\n", status, text);
  std::exit(1);
}
#define CHECK(call) check(call, #call)

size_t freeMemory() {
  size_t free = 0, total = 0;
  CHECK(cuMemGetInfo(&free, &total));
  return free;
}

void say(const std::string& name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.0f, \"unit\": \"%s\"}\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

/// The runtime registers the code as a library, whose kernels run in the current context.
CUkernel kernelOf(const void* symbol) {
  cudaKernel_t kernel = nullptr;
  if (const cudaError_t status = cudaGetKernel(&kernel, symbol); status != cudaSuccess) {
    std::printf("{\"error\": \"%s\", \"call\": \"cudaGetKernel\"}\n", cudaGetErrorName(status));
    std::exit(1);
  }
  return reinterpret_cast<CUkernel>(kernel);
}

/// Decrease of free device memory since the last call. The runtime is already initialized.
class Meter {
 public:
  Meter() {
    kernelOf((const void*)child);
    last_ = freeMemory();
  }
  void say(const std::string& name) {
    const size_t now = freeMemory();
    ::say(name, static_cast<double>(last_) - static_cast<double>(now), "bytes");
    last_ = freeMemory();
  }

 private:
  size_t last_ = 0;
};

CUcontext makeContext() {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  CHECK(cuCtxCreate(&context, nullptr, 0, 0));
#else
  CHECK(cuCtxCreate(&context, 0, 0));
#endif
  return context;
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, bytes));
  return memory;
}

template <class... A>
CUresult launch(const void* symbol, CUstream stream, A... arguments) {
  void* words[] = {&arguments...};
  const CUresult status = cuLaunchKernel(reinterpret_cast<CUfunction>(kernelOf(symbol)), 1, 1, 1, 1,
                                         1, 1, 0, stream, words, nullptr);
  return status == CUDA_SUCCESS ? cuCtxSynchronize() : status;
}

void limitCase(CUlimit limit, const char* name, size_t value,
               const std::function<CUresult(CUdeviceptr)>& run) {
  const CUdeviceptr memory = allocate(64);
  Meter meter;
  size_t before = 0, after = 0;
  const CUresult known = cuCtxGetLimit(&before, limit);
  const CUresult status = cuCtxSetLimit(limit, value == 0 ? before : value);
  cuCtxGetLimit(&after, limit);
  const std::string what = std::string(name) + " " + std::to_string(value);
  say(what + ": default", known == CUDA_SUCCESS ? static_cast<double>(before) : -1, "");
  say(what + ": status of setting it", status, "CUresult");
  say(what + ": value then", static_cast<double>(after), "");
  meter.say(what + ": set");
  const CUresult ran = run(memory);
  meter.say(what + ": used by a kernel, status " + std::to_string(ran));
}

void pending(size_t value) {
  limitCase(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, "pending launches", value,
            [](CUdeviceptr out) { return launch((const void*)parent, nullptr, out); });
}
void syncDepth(size_t value) {
  limitCase(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, "sync depth", value,
            [](CUdeviceptr out) { return launch((const void*)parent, nullptr, out); });
}
void fifo(size_t value) {
  limitCase(CU_LIMIT_PRINTF_FIFO_SIZE, "printf buffer", value,
            [](CUdeviceptr out) { return launch((const void*)child, nullptr, out); });
}
void heap(size_t value) {
  limitCase(CU_LIMIT_MALLOC_HEAP_SIZE, "malloc heap", value,
            [](CUdeviceptr out) { return launch((const void*)keep, nullptr, out); });
}
void stack(size_t value) {
  limitCase(CU_LIMIT_STACK_SIZE, "stack", value,
            [](CUdeviceptr out) { return launch((const void*)child, nullptr, out); });
}

/// Variables, heap and local memory of a program's code in a second context.
void secondContext(size_t) {
  Meter meter;
  const CUdeviceptr first = allocate(64);
  launch((const void*)use, nullptr, first);
  meter.say("first context: code with 64 MiB of variables used");
  launch((const void*)keep, nullptr, first);
  meter.say("first context: malloc used");
  launch((const void*)deep, nullptr, first, 3);
  meter.say("first context: 16 KiB of local memory a thread used");
  CUcontext outer = nullptr;
  CHECK(cuCtxGetCurrent(&outer));
  makeContext();
  meter.say("second context made");
  const CUdeviceptr second = allocate(64);
  launch((const void*)child, nullptr, second);
  meter.say("second context: a small kernel of the same program used");
  launch((const void*)use, nullptr, second);
  meter.say("second context: variables used");
  launch((const void*)keep, nullptr, second);
  meter.say("second context: malloc used");
  launch((const void*)deep, nullptr, second, 3);
  meter.say("second context: local memory used");
}

/// A kernel launched into a stream of a context that is not current.
void foreignStream(size_t) {
  CUcontext first = nullptr, second = nullptr;
  CHECK(cuCtxGetCurrent(&first));
  second = makeContext();
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr out = allocate(64);
  CHECK(cuCtxSetCurrent(first));
  Meter meter;
  const CUresult status = launch((const void*)deep, stream, out, 3);
  CHECK(cuCtxSetCurrent(second));
  const CUresult done = cuStreamSynchronize(stream);
  CHECK(cuCtxSetCurrent(first));
  meter.say("local memory in another context's stream, status " + std::to_string(status) + " and " +
            std::to_string(done));
  launch((const void*)deep, nullptr, allocate(64), 3);
  meter.say("then in the current context");
}

/// One piece of 2 MiB, mapped at addresses that each need a separate page table.
void pageTables(size_t) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  Meter meter;
  CUmemGenericAllocationHandle handle = 0, other = 0;
  CHECK(cuMemCreate(&handle, 2 * kMiB, &properties, 0));
  meter.say("2 MiB created");
  constexpr size_t kSpace = 512 * kMiB;
  constexpr int kCount = 1024;
  CUdeviceptr base = 0;
  CHECK(cuMemAddressReserve(&base, kCount * kSpace, 0, 0, 0));
  meter.say("512 GiB of addresses reserved");
  for (int i = 0; i < kCount; ++i) CHECK(cuMemMap(base + i * kSpace, 2 * kMiB, 0, handle, 0));
  meter.say("mapped at 1,024 places, 512 MiB apart");
  for (int i = 0; i < kCount; ++i) CHECK(cuMemSetAccess(base + i * kSpace, 2 * kMiB, &access, 1));
  meter.say("made accessible there");
  for (int i = 0; i < 200; ++i) CHECK(cuMemMap(base + (2 + 2 * i) * kMiB, 2 * kMiB, 0, handle, 0));
  CHECK(cuMemSetAccess(base, 402 * kMiB, &access, 1));
  meter.say("mapped at 200 more places in one table");
  for (int i = 0; i < 1024; ++i) CHECK(cuMemAddressReserve(&base, 2 * kMiB, 0, 0, 0));
  meter.say("1,024 small ranges reserved");
  CHECK(cuMemRelease(handle));
  CHECK(cuMemCreate(&other, 2 * kMiB, &properties, 0));
  say("handle of a mapped and released piece given again", handle == other, "");
}

void pitches(size_t) {
  unsigned long long worst = 0, width = 0;
  for (unsigned long long i = 0, next = 1; i < 3000;
       ++i, next = next * 6364136223846793005ull + 1442695040888963407ull) {
    const size_t bytes = i < 600 ? i + 1 : 1 + (next >> 33) % (i % 10 == 0 ? 400'000'000 : 300'000);
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    if (cuMemAllocPitch(&memory, &pitch, bytes, i % 7 == 0 && bytes < 300'000 ? 33 : 1,
                        4u << i % 3) != CUDA_SUCCESS)
      continue;
    cuMemFree(memory);
    const unsigned long long beyond = pitch - (bytes + 511) / 512 * 512;
    if (beyond > worst) worst = beyond, width = bytes;
  }
  say("most of a pitch beyond the next 512, at width " + std::to_string(width),
      static_cast<double>(worst), "bytes");
}

void pools(size_t) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  CHECK(cuMemPoolCreate(&pool, &properties));
  cuuint64_t threshold = ~0ull, before = 0, now = 0;
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  for (const size_t bytes : {size_t{1}, 20 * kMiB, 20 * kMiB, 33 * kMiB, 100 * kMiB, 1000 * kMiB}) {
    CUdeviceptr memory = 0;
    CHECK(cuMemAllocFromPoolAsync(&memory, bytes, pool, nullptr));
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now));
    say("pool grows for " + std::to_string(bytes), static_cast<double>(now - before), "bytes");
    before = now;
  }
  // Pieces with holes between them, then one of the size of all holes.
  std::vector<CUdeviceptr> pieces(64);
  for (CUdeviceptr& piece : pieces)
    CHECK(cuMemAllocFromPoolAsync(&piece, 16 * kMiB, pool, nullptr));
  for (size_t i = 0; i < pieces.size(); i += 2) CHECK(cuMemFreeAsync(pieces[i], nullptr));
  CHECK(cuStreamSynchronize(nullptr));
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &before));
  CUdeviceptr large = 0;
  CHECK(cuMemAllocFromPoolAsync(&large, 500 * kMiB, pool, nullptr));
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now));
  say("pool with 512 MiB in holes of 16 MiB grows for 500 MiB by",
      static_cast<double>(now - before), "bytes");
}

void places(size_t) {
  for (int type = 0; type <= 4; ++type) {
    for (int kind = 1; kind <= 2; ++kind) {
      const std::string name =
          "location " + std::to_string(type) + ", kind " + std::to_string(kind);
      CUmemPoolProps properties{};
      properties.allocType = static_cast<CUmemAllocationType>(kind);
      properties.location.type = static_cast<CUmemLocationType>(type);
      CUmemoryPool pool = nullptr;
      say("cuMemPoolCreate, " + name, cuMemPoolCreate(&pool, &properties), "CUresult");
      CUmemAllocationProp memory{};
      memory.type = properties.allocType;
      memory.location = properties.location;
      CUmemGenericAllocationHandle handle = 0;
      say("cuMemCreate, " + name, cuMemCreate(&handle, 2 * kMiB, &memory, 0), "CUresult");
#if CUDA_VERSION >= 13000
      say("cuMemGetDefaultMemPool, " + name,
          cuMemGetDefaultMemPool(&pool, &properties.location, properties.allocType), "CUresult");
#endif
    }
  }
}

struct Case {
  const char* name;
  void (*run)(size_t);
  std::vector<size_t> numbers;
};

const Case kCases[] = {
    {"pending", pending, {0, 2048, 2049, 4096, 4097, 8192, 65536, 100000, 300000, 1 << 20}},
    {"sync_depth", syncDepth, {0, 4, 16}},
    {"fifo", fifo, {0, 64 * kMiB, 256 * kMiB}},
    {"heap", heap, {0, 64 * kMiB, 256 * kMiB}},
    {"stack", stack, {0, 1025, 2000, 4096, 16384}},
    {"second_context", secondContext, {0}},
    {"foreign_stream", foreignStream, {0}},
    {"page_tables", pageTables, {0}},
    {"pitches", pitches, {0}},
    {"pools", pools, {0}},
    {"places", places, {0}},
};

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    int failed = 0;
    for (const Case& each : kCases) {
      for (const size_t number : each.numbers)
        failed +=
            std::system((std::string(arguments[0]) + " " + each.name + " " + std::to_string(number))
                            .c_str()) != 0;
    }
    return failed == 0 ? 0 : 1;
  }
  CHECK(cuInit(0));
  makeContext();
  for (const Case& each : kCases) {
    if (std::strcmp(each.name, arguments[1]) == 0)
      return each.run(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0), 0;
  }
  return 2;
}
