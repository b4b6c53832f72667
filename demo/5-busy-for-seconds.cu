// Keeps the GPU busy for a number of seconds and prints its work. Started twice at the same time,
// it shows how the GPU is shared.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "check.h"

constexpr int kThreads = 32;
constexpr int kRounds = 4000;
constexpr int kLaunchesAtOnce = 8;

// Iterates x -> 3.7 x (1 - x). Short enough for turns of other programs between two launches.
__global__ void iterate(float* values) {
  float x = values[threadIdx.x];
  for (int round = 0; round < kRounds; ++round) x = 3.7f * x * (1.0f - x);
  values[threadIdx.x] = x;
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 1.0;
  float values[kThreads];
  for (int i = 0; i < kThreads; ++i) values[i] = (i + 1.0f) / (kThreads + 1.0f);
  float* onDevice;
  CHECK(cudaMalloc(&onDevice, sizeof values));
  CHECK(cudaMemcpy(onDevice, values, sizeof values, cudaMemcpyHostToDevice));

  std::printf("begins: %g s of kernels, as many as the GPU lets it\n", seconds);
  std::fflush(stdout);
  long launches = 0;
  const double begin = now();
  double end = begin;
  for (; end - begin < seconds; end = now()) {
    for (int i = 0; i < kLaunchesAtOnce; ++i) iterate<<<1, kThreads>>>(onDevice);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    launches += kLaunchesAtOnce;
  }

  CHECK(cudaMemcpy(values, onDevice, sizeof values, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(onDevice));
  int wrong = 0;
  for (const float value : values) wrong += !(value > 0.0f && value < 1.0f);
  std::printf("done: %ld kernels in %.1f s, %.0f a second, %d wrong values\n", launches,
              end - begin, launches / (end - begin), wrong);
  return wrong == 0 ? 0 : 1;
}
