// One tenant of a shared GPU. It works from START for SECONDS, and prints its work.
//   tenant calibrate MICROSECONDS
//       prints the number of iterations that a kernel that fills the GPU runs in this time
//   tenant saturate START SECONDS ITERATIONS
//       always two kernels in flight
//   tenant small START SECONDS ITERATIONS
//       the same with kernels of 16 blocks, which use a small part of the GPU
//   tenant stream START SECONDS
//       the same with kernels that only read and write memory, 2 GiB each
//   tenant fill START SECONDS
//       allocates memory in pieces of 16 MiB until none is left
//   tenant decode START SECONDS ITERATIONS
//       rounds of 20 kernels, a synchronization and a pause of 60 us
//   tenant request START SECONDS ITERATIONS
//       one kernel and a synchronization every 5 ms
//   tenant copy START SECONDS
//       pinned copies of 64 MiB to the GPU
//   tenant upload START SECONDS
//       the same from pageable memory
//   tenant feed START SECONDS ITERATIONS
//       pinned copies of 64 MiB into two alternating buffers, and a kernel after each
//   tenant touch START SECONDS MICROSECONDS
//       pageable copies of 4 KiB to the GPU, with that interval
//   tenant fault START SECONDS
//       writes to an illegal address in the middle of that time
// START is a time of the system clock in seconds, so that tenants begin together.
#include <cstring>
#include <string>

#include "work_diary.h"

__global__ void multiply(float* out, int iterations) {
  float a = threadIdx.x, b = blockIdx.x, c = a + 1, d = b + 1;
  for (int i = 0; i < iterations; ++i) {
    a = a * 0.5f + 1.0f;
    b = b * 0.5f + 1.0f;
    c = c * 0.5f + 1.0f;
    d = d * 0.5f + 1.0f;
  }
  if (a + b + c + d == -1.0f) *out = a;
}

__global__ void scale(float4* to, const float4* from, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const float4 v = from[i];
    to[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  }
}

__global__ void store(float* out) { *out = 1; }

struct Gpu {
  int blocks = 0;
  int grid = 0;  ///< duration of a launch
  float* out = nullptr;
  float4* ends[2]{};
  cudaStream_t stream = nullptr;

  Gpu() {
    CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
    grid = 2 * blocks;
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    launch(1);
    wait();
  }
  void launch(int iterations) {
    multiply<<<grid, 1024, 0, stream>>>(out, iterations);
    CHECK(cudaGetLastError());
  }
  /// 2 GiB of memory traffic; no cache holds 512 MiB.
  void stream2GiB() {
    constexpr std::size_t kBytes = 256 << 20;
    for (float4*& end : ends)
      if (end == nullptr) CHECK(cudaMalloc(&end, kBytes));
    for (int i = 0; i < 4; ++i) {
      scale<<<8 * blocks, 512, 0, stream>>>(ends[1 - i % 2], ends[i % 2], kBytes / sizeof(float4));
      CHECK(cudaGetLastError());
    }
  }
  void wait() { CHECK(cudaStreamSynchronize(stream)); }
};

int calibrate(Gpu& gpu, double microseconds) {
  const auto time = [&](int iterations) {
    return best(20,
                [&] {
                  for (int i = 0; i < 4; ++i) gpu.launch(iterations);
                  gpu.wait();
                }) /
           4;
  };
  const double small = time(1000), large = time(11000);
  const double each = (large - small) / 10000;
  return std::max(1, static_cast<int>((microseconds * 1e-6 - (small - 1000 * each)) / each));
}

template <class Launch>
void saturate(Gpu& gpu, Diary& diary, double start, double duration, Launch launch) {
  cudaEvent_t done[2];
  for (cudaEvent_t& event : done) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  unsigned next = 0;
  diary.keep(start, duration, [&] {
    CHECK(cudaEventSynchronize(done[next % 2]));
    launch();
    CHECK(cudaEventRecord(done[next++ % 2], gpu.stream));
  });
  gpu.wait();
}

/// Computes with data from the host while the next data arrives.
void feed(Gpu& gpu, Diary& diary, double start, double duration, const void* host,
          std::size_t bytes, int iterations) {
  void* buffers[2];
  cudaEvent_t copied[2], computed[2];
  cudaStream_t copies;
  CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMalloc(&buffers[i], bytes));
    CHECK(cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&computed[i], cudaEventDisableTiming));
  }
  unsigned next = 0;
  diary.keep(start, duration, [&] {
    const unsigned i = next++ % 2;
    CHECK(cudaEventSynchronize(computed[i]));
    CHECK(cudaMemcpyAsync(buffers[i], host, bytes, cudaMemcpyHostToDevice, copies));
    CHECK(cudaEventRecord(copied[i], copies));
    CHECK(cudaStreamWaitEvent(gpu.stream, copied[i]));
    gpu.launch(iterations);
    CHECK(cudaEventRecord(computed[i], gpu.stream));
  });
  gpu.wait();
}

/// Bytes that could be allocated.
double fill() {
  constexpr std::size_t kPiece = 16 << 20;
  std::size_t pieces = 0;
  for (void* piece = nullptr; cudaMalloc(&piece, kPiece) == cudaSuccess;) ++pieces;
  return static_cast<double>(pieces * kPiece);
}

int main(int count, char** arguments) {
  const std::string mode = count > 2 ? arguments[1] : "";
  Gpu gpu;
  if (mode == "calibrate") return std::printf("%d\n", calibrate(gpu, std::atof(arguments[2]))), 0;
  if (count < 4) return std::fprintf(stderr, "see the head of tenant.cu\n"), 2;
  const double start = std::atof(arguments[2]), duration = std::atof(arguments[3]);
  const int iterations = count > 4 ? std::atoi(arguments[4]) : 1;

  if (mode == "fill") return report("allocated", fill(), "bytes"), 0;
  constexpr std::size_t kLarge = 64 << 20, kSmall = 4096;
  void *host = nullptr, *device = nullptr;
  static char pageable[kLarge];
  CHECK(cudaMallocHost(&host, kLarge));
  CHECK(cudaMalloc(&device, kLarge));
  Diary diary;
  if (mode == "small") gpu.grid = 16;
  if (mode == "saturate" || mode == "small") {
    saturate(gpu, diary, start, duration, [&] { gpu.launch(iterations); });
  } else if (mode == "stream") {
    gpu.stream2GiB();  // allocate the memory before the time begins
    saturate(gpu, diary, start, duration, [&] { gpu.stream2GiB(); });
  } else if (mode == "decode") {
    diary.keep(start, duration, [&] {
      for (int i = 0; i < 20; ++i) gpu.launch(iterations);
      gpu.wait();
      spin(60e-6);
    });
  } else if (mode == "request") {
    std::vector<double> served;
    diary.keep(start, duration, [&] {
      const double begin = seconds();
      gpu.launch(iterations);
      gpu.wait();
      served.push_back(seconds() - begin);
      spin(std::max(0.0, 5e-3 - served.back()));
    });
    diary.times = served;
  } else if (mode == "copy") {
    diary.keep(start, duration, [&] {
      CHECK(cudaMemcpyAsync(device, host, kLarge, cudaMemcpyHostToDevice, gpu.stream));
      gpu.wait();
    });
    report("bandwidth", diary.rate() * kLarge / 1e9, "GB/s");
  } else if (mode == "upload") {
    std::memset(pageable, 1, kLarge);
    diary.keep(start, duration,
               [&] { CHECK(cudaMemcpy(device, pageable, kLarge, cudaMemcpyHostToDevice)); });
    report("bandwidth", diary.rate() * kLarge / 1e9, "GB/s");
  } else if (mode == "feed") {
    feed(gpu, diary, start, duration, host, kLarge, iterations);
  } else if (mode == "fault") {
    while (wallClock() < start + duration / 2) spin(1e-3);
    gpu.out = nullptr;
    store<<<1, 1, 0, gpu.stream>>>(gpu.out);
    const bool failed = cudaStreamSynchronize(gpu.stream) == cudaErrorIllegalAddress;
    report("rate", failed ? 1 : 0, "1/s");
    return 0;
  } else if (mode == "touch") {
    const double pause = count > 4 ? std::atof(arguments[4]) * 1e-6 : 0;
    std::vector<double> served;
    diary.keep(start, duration, [&] {
      const double begin = seconds();
      CHECK(cudaMemcpy(device, pageable, kSmall, cudaMemcpyHostToDevice));
      served.push_back(seconds() - begin);
      spin(pause);
    });
    diary.times = served;
  } else {
    return std::fprintf(stderr, "tenant: no mode %s\n", mode.c_str()), 2;
  }
  diary.tell();
}
