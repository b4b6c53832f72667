// A tenant for second_check.py.
//   second_check fill          allocates all device memory, prints the size, and uses it until its
//                              standard input ends
//   second_check busy SECONDS  always has a kernel on the GPU
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "measure.h"

constexpr std::size_t kPiece = std::size_t{32} << 20;

__global__ void spin(unsigned milliseconds) {
  for (unsigned i = 0; i < milliseconds * 10; ++i) __nanosleep(100'000);
}

void fill() {
  std::vector<void*> pieces;
  for (void* piece = nullptr; cudaMalloc(&piece, kPiece) == cudaSuccess;) pieces.push_back(piece);
  cudaGetLastError();
  std::printf("{\"filled\": %zu}\n", pieces.size() * kPiece);
  std::fflush(stdout);
  for (void* piece : pieces) CHECK(cudaMemset(piece, 1, kPiece));
  CHECK(cudaDeviceSynchronize());
  for (char byte = 0; read(STDIN_FILENO, &byte, 1) > 0;) {
  }
}

void keepBusy(double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
         seconds) {
    for (int i = 0; i < 10; ++i) spin<<<1, 1>>>(1);
    CHECK(cudaDeviceSynchronize());
  }
}

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "fill") == 0) return fill(), 0;
  if (count == 3 && std::strcmp(arguments[1], "busy") == 0)
    return keepBusy(std::atof(arguments[2])), 0;
  return 2;
}
