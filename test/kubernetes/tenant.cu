// The program of containers in the tests with Kubernetes. Each line of its output is a success; it
// ends with status 1 and a message after a failure.
//   tenant once      computes one sum, and checks it
//   tenant work      repeats that until it is terminated
//   tenant look      prints devices and their memory
//   tenant fill MIB  allocates until it has that much, or is refused
//   tenant hold MIB  allocates that much, and continues to compute
//   tenant keep MIB  allocates that much once, and continues to compute in it
//   tenant managed MIB  computes in that much managed memory, and says where it is then
//   tenant rest MIB  allocates that much, and does nothing until it is terminated
#include <cuda_runtime.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static constexpr int kNumbers = 1 << 12;
static constexpr std::size_t kMebibyte = 1 << 20;
static volatile std::sig_atomic_t ended = 0;

__global__ void sum(const int* a, const int* b, int* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

/// Other numbers in each round, so that data of the last one is not mistaken for a result.
static void compute(int round) {
  std::vector<int> a(kNumbers), b(kNumbers), c(kNumbers);
  for (int i = 0; i < kNumbers; ++i) a[i] = i + round, b[i] = 3 * i;
  int* memory = nullptr;
  const std::size_t bytes = kNumbers * sizeof(int);
  CHECK(cudaMalloc(&memory, 3 * bytes));
  CHECK(cudaMemcpy(memory, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(memory + kNumbers, b.data(), bytes, cudaMemcpyHostToDevice));
  sum<<<(kNumbers + 127) / 128, 128>>>(memory, memory + kNumbers, memory + 2 * kNumbers, kNumbers);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), memory + 2 * kNumbers, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(memory));
  for (int i = 0; i < kNumbers; ++i) {
    if (c[i] == 4 * i + round) continue;
    std::printf("round %d: number %d is %d and not %d\n", round, i, c[i], 4 * i + round);
    std::exit(1);
  }
}

static void work() {
  for (int round = 0; !ended; ++round) {
    compute(round);
    if (round == 0) std::printf("working\n");
    if (round % 10 == 9) std::printf("%d rounds\n", round + 1);
    std::fflush(stdout);
    usleep(100'000);
  }
  std::printf("ended\n");
}

__global__ void increase(int* numbers, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] += 1;
}

/// The result of each round is the input of the next one, at the same address.
static void keep(std::size_t mebibytes) {
  const int count = static_cast<int>(mebibytes * kMebibyte / sizeof(int));
  std::vector<int> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = i;
  int* memory = nullptr;
  CHECK(cudaMalloc(&memory, mebibytes * kMebibyte));
  CHECK(cudaMemcpy(memory, numbers.data(), mebibytes * kMebibyte, cudaMemcpyHostToDevice));
  for (int round = 0; !ended; ++round) {
    increase<<<(count + 127) / 128, 128>>>(memory, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(numbers.data(), memory, mebibytes * kMebibyte, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) {
      if (numbers[i] == i + round + 1) continue;
      std::printf("round %d: number %d is %d\n", round, i, numbers[i]);
      std::exit(1);
    }
    if (round == 0) std::printf("working\n");
    if (round % 10 == 9) std::printf("%d rounds\n", round + 1);
    std::fflush(stdout);
    usleep(100'000);
  }
}

/// Whether this process has the page.
static bool isPresent(const void* address) {
  std::uint64_t entry = 0;
  std::FILE* const pages = std::fopen("/proc/self/pagemap", "rb");
  const auto page = reinterpret_cast<std::uintptr_t>(address) / 4096;
  if (pages == nullptr ||
      std::fseek(pages, static_cast<long>(page * sizeof entry), SEEK_SET) != 0 ||
      std::fread(&entry, sizeof entry, 1, pages) != 1) {
    std::printf("/proc/self/pagemap cannot be read\n");
    std::exit(1);
  }
  std::fclose(pages);
  return entry >> 63 != 0;
}

static void managed(std::size_t mebibytes) {
  const int count = static_cast<int>(mebibytes * kMebibyte / sizeof(int));
  int* numbers = nullptr;
  CHECK(cudaMallocManaged(&numbers, mebibytes * kMebibyte));
  for (int i = 0; i < count; ++i) numbers[i] = i;
  increase<<<(count + 127) / 128, 128>>>(numbers, count);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  std::printf(isPresent(numbers) ? "in host memory\n" : "on the GPU\n");
  for (int i = 0; i < count; ++i) {
    if (numbers[i] == i + 1) continue;
    std::printf("number %d is %d\n", i, numbers[i]);
    std::exit(1);
  }
}

static void look() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("devices %d\n", devices);
  for (int device = 0; device < devices; ++device) {
    std::size_t unused = 0, total = 0;
    CHECK(cudaSetDevice(device));
    CHECK(cudaMemGetInfo(&unused, &total));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, device));
    std::printf("device %d: %s, %zu MiB, %zu MiB free\n", device, properties.name,
                total / kMebibyte, unused / kMebibyte);
  }
}

static void fill(std::size_t mebibytes) {
  for (std::size_t have = 0; have < mebibytes; have += 16) {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, 16 * kMebibyte);
    if (error == cudaSuccess) continue;
    std::printf("%zu MiB, then %s\n", have, cudaGetErrorName(error));
    return;
  }
  std::printf("%zu MiB\n", mebibytes);
}

static void rest() {
  std::printf("resting\n");
  std::fflush(stdout);
  while (!ended) pause();
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "once";
  const std::size_t mebibytes = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
  std::signal(SIGTERM, [](int) { ended = 1; });
  if (std::strcmp(what, "once") == 0) compute(0), std::printf("right\n");
  if (std::strcmp(what, "work") == 0) work();
  if (std::strcmp(what, "look") == 0) look();
  if (std::strcmp(what, "fill") == 0) fill(mebibytes);
  if (std::strcmp(what, "hold") == 0) fill(mebibytes), work();
  if (std::strcmp(what, "keep") == 0) keep(mebibytes);
  if (std::strcmp(what, "managed") == 0) managed(mebibytes);
  if (std::strcmp(what, "rest") == 0) fill(mebibytes), rest();
  return 0;
}
