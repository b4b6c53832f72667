// Allocates device memory in one way, prints "ready", and keeps it until its standard input ends.
//   account idle | allocations | pieces | pool | streams | freed_streams | events | local_memory
//           | heap | second_context
//   account cost   natively: memory of a stream and an event, and what remains after destruction
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "measure.h"

constexpr std::size_t kMiB = 1 << 20;

__global__ void keep(void** place) { *place = malloc(16); }

__global__ void deep(int* out, int index) {
  int local[4096];
  for (int i = 0; i < 4096; ++i) local[(i * index) & 4095] = i;
  *out = local[index & 4095];
}

void makeStreams(std::vector<cudaStream_t>& streams, int count) {
  streams.resize(count);
  for (cudaStream_t& stream : streams)
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

void endStreams(std::vector<cudaStream_t>& streams) {
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  streams.clear();
}

void makeEvents(std::vector<cudaEvent_t>& events, int count) {
  events.resize(count);
  for (cudaEvent_t& event : events) CHECK(cudaEventCreate(&event));
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, bytes));
  return memory;
}

void take(const std::string& way) {
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  if (way == "allocations") {
    for (int i = 0; i < 4; ++i) allocate(256 * kMiB);
  } else if (way == "pieces") {
    for (int i = 0; i < 20'000; ++i) allocate(5000);
  } else if (way == "pool") {
    void* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, 500 * kMiB, nullptr));
    CHECK(cudaDeviceSynchronize());
  } else if (way == "streams") {
    makeStreams(streams, 1000);
  } else if (way == "freed_streams") {
    makeStreams(streams, 1000);
    endStreams(streams);
  } else if (way == "events") {
    makeEvents(events, 10'000);
  } else if (way == "local_memory") {
    deep<<<1, 1>>>(static_cast<int*>(allocate(4)), 3);
    CHECK(cudaDeviceSynchronize());
  } else if (way == "heap") {
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 256 * kMiB));
    keep<<<1, 1>>>(static_cast<void**>(allocate(8)));  // allocated when code that uses it is loaded
    CHECK(cudaDeviceSynchronize());
  } else if (way == "second_context") {
    CUcontext context = nullptr;
    const auto create =
        driverFunction<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 3020);
    if (create(&context, 0, 0) != CUDA_SUCCESS) check(cudaErrorMemoryAllocation, "cuCtxCreate");
  } else if (way != "idle") {
    std::fprintf(stderr, "account: no way %s\n", way.c_str());
    std::exit(2);
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

double freeMemory() {
  std::size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<double>(free);
}

void cost() {
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  const double before = freeMemory();
  makeStreams(streams, 1000);
  report("memory of a stream", (before - freeMemory()) / 1000, "bytes");
  endStreams(streams);
  report("kept of a destroyed stream", (before - freeMemory()) / 1000, "bytes");
  makeStreams(streams, 1000);
  report("memory of a stream, made again", (before - freeMemory()) / 1000, "bytes");
  const double between = freeMemory();
  makeEvents(events, 10'000);
  report("memory of an event", (between - freeMemory()) / 10'000, "bytes");
}

int main(int count, char** arguments) {
  CHECK(cudaFree(nullptr));
  const std::string way = count > 1 ? arguments[1] : "";
  if (way == "cost")
    cost();
  else
    take(way);
}
