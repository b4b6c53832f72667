// An honest tenant. It works until it is told to stop, and records its progress in its diary. Exit
// status: 3 if a call fails, 4 if a result is wrong.
//   neighbour check    FILE ITERATIONS    copies, a kernel with checked results, device and pinned
//                                         memory that is allocated and freed, pauses of 2 ms
//   neighbour keep     FILE               memory of each kind; each round checks and changes each
//                                         word of it
//   neighbour saturate FILE MILLISECONDS  always 16 kernels of that duration in flight
//   neighbour nested   FILE MILLISECONDS  the same by kernels that launch a kernel for it
//   neighbour compute  FILE ITERATIONS    the same with kernels that compute, which use processor
//                                         time on a simulated GPU
//   neighbour request  FILE MILLISECONDS  one kernel, a synchronization, and a pause of 2 ms
//   neighbour gang     FILE MILLISECONDS  kernels on two GPUs that wait for each other, always
//                                         several in flight
//   neighbour copy     FILE BYTES         pageable copies of that size to the GPU and back
//   neighbour idle     FILE               one query every 2 ms
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "diary.h"

constexpr unsigned kThreads = 64, kInFlight = 16, kMeetings = 4;
constexpr useconds_t kThought = 2000;

__global__ void advance(unsigned* values, int iterations) {
  unsigned value = values[threadIdx.x];
  for (int i = 0; i < iterations; ++i) value = value * 1664525u + 1013904223u;
  values[threadIdx.x] = value;
}

/// Uses GPU time, but hardly any processor time on a simulated GPU.
__global__ void rest(int milliseconds) {
  for (int i = 0; i < milliseconds; ++i) __nanosleep(1'000'000);
}

/// The same in a child: of the stream, beside it, or after its parent.
__global__ void launchRest(int kind, int milliseconds) {
  if (kind == 0) rest<<<1, 1>>>(milliseconds);
  if (kind == 1) rest<<<1, 1, 0, cudaStreamFireAndForget>>>(milliseconds);
  if (kind == 2) rest<<<1, 1, 0, cudaStreamTailLaunch>>>(milliseconds);
}

/// The same on one of two GPUs; then waits until the other has caught up.
__global__ void meet(volatile unsigned* here, const volatile unsigned* there, unsigned round,
                     int milliseconds) {
  for (int i = 0; i < milliseconds; ++i) __nanosleep(1'000'000);
  *here = round;
  __threadfence_system();
  while (*there < round) __nanosleep(20'000);
}

__device__ unsigned contentOf(unsigned index, unsigned round) {
  return (index + round * 7919u) * 2654435761u;
}

/// Counts the words that are not those of the last round, and writes those of this one.
__global__ void renew(unsigned* words, unsigned count, unsigned round, unsigned* wrong) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (round > 0 && words[i] != contentOf(i, round - 1)) atomicAdd(wrong, 1);
  words[i] = contentOf(i, round);
}

unsigned advanced(unsigned value, int iterations) {
  for (int i = 0; i < iterations; ++i) value = value * 1664525u + 1013904223u;
  return value;
}

class Neighbour {
 public:
  Neighbour(DiaryPage& page, int iterations)
      : page_(page), diary_(page.threads[0]), iterations_(iterations) {}

  bool begin() {
    return diary_.make([&] {
      return cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    }) && diary_.make([&] { return cudaMalloc(&values_, kThreads * sizeof *values_); }) &&
           diary_.make([&] { return cudaMemset(values_, 0, kThreads * sizeof *values_); });
  }

  bool check(unsigned round) {
    std::array<unsigned, kThreads> first, result{};
    std::iota(first.begin(), first.end(), round);
    unsigned *device = nullptr, *pinned = nullptr;
    const std::size_t bytes = sizeof first, room = std::size_t{4096} << round % 10;
    const bool done =
        diary_.make([&] { return cudaMalloc(&device, room); }) &&
        diary_.make([&] { return cudaMallocHost(&pinned, room); }) && diary_.make([&] {
          return cudaMemcpy(device, first.data(), bytes, cudaMemcpyHostToDevice);
        }) &&
        launch(device) && diary_.make([&] {
          return cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream_);
        }) &&
        diary_.make([&] { return cudaStreamSynchronize(stream_); });
    if (!done) return false;
    std::memcpy(result.data(), pinned, bytes);
    for (unsigned i = 0; i < kThreads; ++i)
      wrong_ = wrong_ || result[i] != advanced(first[i], iterations_);
    if (wrong_ || !diary_.make([&] { return cudaFreeHost(pinned); }) ||
        !diary_.make([&] { return cudaFree(device); }))
      return false;
    return usleep(kThought), true;
  }

  bool keep(unsigned round) {
    if (round == 0 && !beginToKeep()) return false;
    for (std::size_t i = 0; i < std::size(kept_); ++i)
      if (!diary_.make([&] {
            ::renew<<<(kKept[i] + 255) / 256, 256, 0, stream_>>>(kept_[i], kKept[i], round,
                                                                 values_);
            return cudaGetLastError();
          }))
        return false;
    unsigned wrong = 0;
    if (!diary_.make([&] {
          return cudaMemcpyAsync(&wrong, values_, sizeof wrong, cudaMemcpyDeviceToHost, stream_);
        }) ||
        !diary_.make([&] { return cudaStreamSynchronize(stream_); }))
      return false;
    wrong_ = wrong > 0;
    return !wrong_;
  }

  bool saturate(unsigned round) {
    return keepInFlight(round, [&] { return launchRest(); });
  }

  bool nested(unsigned round) {
    return keepInFlight(round, [&] {
      return diary_.make([&] {
        ::launchRest<<<1, 1, 0, stream_>>>(static_cast<int>(round % 3), iterations_);
        return cudaGetLastError();
      });
    });
  }

  bool compute(unsigned round) {
    return keepInFlight(round, [&] { return launch(values_); });
  }

  bool request(unsigned) {
    if (!launchRest() || !diary_.make([&] { return cudaStreamSynchronize(stream_); })) return false;
    return usleep(kThought), true;
  }

  bool gang(unsigned round) {
    if (meeting_ == nullptr && !beginGang()) return false;
    const auto onBoth = [&](auto call) {
      for (int gpu = 0; gpu < 2; ++gpu)
        if (!diary_.make([&] { return cudaSetDevice(gpu); }) ||
            !diary_.make([&] { return call(gpu); }))
          return false;
      return true;
    };
    const auto launch = [&](int gpu) {
      meet<<<1, 1, 0, streams_[gpu]>>>(meeting_ + gpu, meeting_ + 1 - gpu, round + 1, iterations_);
      return cudaGetLastError();
    };
    return onBoth([&](int gpu) { return cudaEventSynchronize(met_[gpu][round % kMeetings]); }) &&
           onBoth(launch) && onBoth([&](int gpu) {
             return cudaEventRecord(met_[gpu][round % kMeetings], streams_[gpu]);
           });
  }

  bool copy(unsigned) {
    content_.resize(iterations_);
    if (room_ == nullptr && !diary_.make([&] { return cudaMalloc(&room_, content_.size()); }))
      return false;
    return diary_.make([&] {
      return cudaMemcpy(room_, content_.data(), content_.size(), cudaMemcpyHostToDevice);
    }) && diary_.make([&] {
      return cudaMemcpy(content_.data(), room_, content_.size(), cudaMemcpyDeviceToHost);
    });
  }

  bool idle(unsigned) {
    return usleep(kThought), diary_.make([&] { return cudaStreamQuery(stream_); });
  }

  int repeat(bool (Neighbour::*work)(unsigned)) {
    for (unsigned round = 0; page_.stop == 0; ++round) {
      if (!(this->*work)(round)) return wrong_ ? 4 : 3;
    }
    if (!diary_.make([&] { return cudaDeviceSynchronize(); })) return 3;
    return diary_.state = 3, 0;
  }

 private:
  /// Small and large memory, of a pool, and managed.
  bool beginToKeep() {
    return diary_.make([&] { return cudaMalloc(&kept_[0], kKept[0] * sizeof(unsigned)); }) &&
           diary_.make([&] { return cudaMalloc(&kept_[1], kKept[1] * sizeof(unsigned)); }) &&
           diary_.make(
               [&] { return cudaMallocAsync(&kept_[2], kKept[2] * sizeof(unsigned), stream_); }) &&
           diary_.make([&] { return cudaMallocManaged(&kept_[3], kKept[3] * sizeof(unsigned)); });
  }

  bool beginGang() {
    constexpr unsigned kFlags = cudaEventDisableTiming;
    for (int gpu = 0; gpu < 2; ++gpu) {
      if (!diary_.make([&] { return cudaSetDevice(gpu); })) return false;
      if (!diary_.make(
              [&] { return cudaStreamCreateWithFlags(&streams_[gpu], cudaStreamNonBlocking); }))
        return false;
      for (cudaEvent_t& done : met_[gpu])
        if (!diary_.make([&] { return cudaEventCreateWithFlags(&done, kFlags); })) return false;
    }
    if (!diary_.make(
            [&] { return cudaHostAlloc(&meeting_, 2 * sizeof *meeting_, cudaHostAllocPortable); }))
      return false;
    return meeting_[0] = meeting_[1] = 0, true;
  }

  template <typename Launch>
  bool keepInFlight(unsigned round, Launch launch) {
    cudaEvent_t& done = done_[round % kInFlight];
    if (done == nullptr &&
        !diary_.make([&] { return cudaEventCreateWithFlags(&done, cudaEventDisableTiming); }))
      return false;
    return diary_.make([&] { return cudaEventSynchronize(done); }) && launch() &&
           diary_.make([&] { return cudaEventRecord(done, stream_); });
  }

  bool launchRest() {
    return diary_.make([&] {
      rest<<<1, 1, 0, stream_>>>(iterations_);
      return cudaGetLastError();
    });
  }

  bool launch(unsigned* values) {
    return diary_.make([&] {
      advance<<<1, kThreads, 0, stream_>>>(values, iterations_);
      return cudaGetLastError();
    });
  }

  static constexpr unsigned kKept[] = {1000, 700'001, 30'000, 20'000};  ///< words

  DiaryPage& page_;
  Diary& diary_;
  int iterations_;
  cudaStream_t stream_ = nullptr;
  unsigned* values_ = nullptr;
  unsigned* kept_[4]{};
  unsigned* meeting_ = nullptr;
  cudaStream_t streams_[2]{};
  cudaEvent_t met_[2][kMeetings]{};
  std::vector<char> content_;
  char* room_ = nullptr;
  cudaEvent_t done_[kInFlight]{};
  bool wrong_ = false;
};

int main(int count, char** arguments) {
  if (count < 3) return std::fprintf(stderr, "see the head of neighbour.cu\n"), 2;
  const std::string mode = arguments[1];
  Neighbour neighbour(DiaryPage::open(arguments[2]), count > 3 ? std::atoi(arguments[3]) : 1);
  if (!neighbour.begin()) return 3;
  if (mode == "check") return neighbour.repeat(&Neighbour::check);
  if (mode == "keep") return neighbour.repeat(&Neighbour::keep);
  if (mode == "saturate") return neighbour.repeat(&Neighbour::saturate);
  if (mode == "nested") return neighbour.repeat(&Neighbour::nested);
  if (mode == "compute") return neighbour.repeat(&Neighbour::compute);
  if (mode == "request") return neighbour.repeat(&Neighbour::request);
  if (mode == "gang") return neighbour.repeat(&Neighbour::gang);
  if (mode == "copy") return neighbour.repeat(&Neighbour::copy);
  if (mode == "idle") return neighbour.repeat(&Neighbour::idle);
  return std::fprintf(stderr, "neighbour: no mode %s\n", mode.c_str()), 2;
}
