// Managed memory that kernels and the program use in turns: single values, system calls that read
// and write it, copies that name it as host memory, prefetches both ways, and a forked child.
// conformance: judges=itself
// conformance: build=moves managed=moves judges=itself
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "expect.h"

__global__ void add(unsigned* data, size_t count, unsigned amount) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    data[i] += amount;
}

static const size_t kCount = (3 << 20) / 4 + 100;  // no whole pages

static void run(unsigned* data, unsigned amount) {
  add<<<16, 256>>>(data, kCount, amount);
  EXPECT_OK(cudaDeviceSynchronize());
}

static size_t wrong(const unsigned* data, unsigned value) {
  size_t count = 0;
  for (size_t i = 0; i < kCount; ++i) count += data[i] != value;
  return count;
}

static void turns(unsigned* data) {
  for (size_t i = 0; i < kCount; ++i) data[i] = 5;
  for (unsigned turn = 1; turn <= 20; ++turn) {
    run(data, 1);
    EXPECT(data[turn * 30000] == 5 + turn);
  }
  EXPECT(wrong(data, 25) == 0u);
  for (unsigned turn = 1; turn <= 10; ++turn) {
    run(data, 1);
    data[turn * 70000] += 1000;
  }
  EXPECT(wrong(data, 35) == 10u);
  for (unsigned turn = 1; turn <= 10; ++turn) data[turn * 70000] -= 1000;
  run(data, 1);
  EXPECT(wrong(data, 36) == 0u);
}

/// The pages are with the GPU when the system reads and writes them.
static void systemCalls(unsigned* data) {
  char path[] = "/tmp/managed_movingXXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  const size_t bytes = kCount * 4;
  run(data, 4);
  EXPECT(write(file, data, bytes) == static_cast<ssize_t>(bytes));
  std::vector<unsigned> copy(kCount);
  EXPECT(pread(file, copy.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  EXPECT(wrong(copy.data(), 40) == 0u);
  run(data, 1);
  EXPECT(pread(file, data, bytes, 0) == static_cast<ssize_t>(bytes));
  run(data, 2);
  EXPECT(wrong(data, 42) == 0u);
  close(file);
}

static void copies(unsigned* data, unsigned* other) {
  const size_t bytes = kCount * 4;
  unsigned* plain = nullptr;
  EXPECT_OK(cudaMalloc(&plain, bytes));
  std::vector<unsigned> pageable(kCount, 7);
  EXPECT_OK(cudaMemcpy(data, pageable.data(), bytes, cudaMemcpyDefault));
  EXPECT(wrong(data, 7) == 0u);
  run(data, 1);
  EXPECT_OK(cudaMemcpy(plain, data, bytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(other, plain, bytes, cudaMemcpyDeviceToHost));
  EXPECT(wrong(other, 8) == 0u);
  EXPECT_OK(cudaMemcpy(pageable.data(), other, bytes, cudaMemcpyDeviceToHost));
  EXPECT(wrong(pageable.data(), 8) == 0u);
  EXPECT_OK(cudaMemset(other, 0, bytes));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(wrong(other, 0) == 0u);
  EXPECT_OK(cudaMemcpy2D(other, 4096, data, 4096, 4096, 100, cudaMemcpyDefault));
  EXPECT(other[100 * 1024 - 1] == 8u);
  EXPECT(other[100 * 1024] == 0u);
  EXPECT_OK(cudaFree(plain));
}

static void prefetches(unsigned* data) {
  const cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
  const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
  for (size_t i = 0; i < kCount; ++i) data[i] = 1;
  EXPECT_OK(cudaMemPrefetchAsync(data, kCount * 4, gpu, 0));
  data[5] = 2;
  add<<<16, 256>>>(data, kCount, 1);
  EXPECT_OK(cudaMemPrefetchAsync(data, kCount * 4, host, 0));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(data[5] == 3u);
  data[5] = 2;
  EXPECT(wrong(data, 2) == 0u);
}

/// All threads access the pages at once.
static void threads(unsigned* data) {
  run(data, 1);
  std::vector<size_t> found(4);
  std::vector<std::thread> all;
  for (size_t& each : found) all.emplace_back([&each, data] { each = wrong(data, 3); });
  for (std::thread& each : all) each.join();
  for (const size_t each : found) EXPECT(each == 0u);
}

static void child(unsigned* data) {
  run(data, 1);
  const pid_t process = fork();
  if (process == 0) _exit(0);
  int status = 1;
  waitpid(process, &status, 0);
  EXPECT(status == 0);
  EXPECT(wrong(data, 4) == 0u);
}

static void attributes(unsigned* data) {
  cudaPointerAttributes known{};
  EXPECT_OK(cudaPointerGetAttributes(&known, data));
  EXPECT(known.type == cudaMemoryTypeManaged);
  EXPECT(known.hostPointer == static_cast<void*>(data));
  EXPECT(known.devicePointer == static_cast<void*>(data));
  EXPECT(known.device == 0);
}

int main() {
  unsigned *data = nullptr, *other = nullptr;
  EXPECT_OK(cudaMallocManaged(&data, kCount * 4));
  EXPECT_OK(cudaMallocManaged(&other, kCount * 4));
  attributes(data);
  turns(data);
  attributes(data);
  systemCalls(data);
  copies(data, other);
  prefetches(data);
  threads(data);
  child(data);
  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFree(other));
  return verdict();
}
