// Holds GPU memory of a known content: keep MIB [TIMES]. At each line of standard input it checks
// and changes all of it, so many times. It prints how long its first call and all took, and how
// many words were wrong.
#include <cstdio>
#include <cstdlib>

#include "measure.h"

constexpr std::size_t kPiece = std::size_t{256} << 20;  ///< bytes of an allocation
constexpr int kMost = 1024;

__device__ unsigned contentOf(std::size_t index, unsigned round) {
  return (static_cast<unsigned>(index) + round * 7919u) * 2654435761u;
}

__global__ void renew(unsigned* words, std::size_t count, std::size_t first, unsigned round,
                      unsigned long long* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    if (round > 0 && words[i] != contentOf(first + i, round - 1)) atomicAdd(wrong, 1ull);
    words[i] = contentOf(first + i, round);
  }
}

int main(int count, char** arguments) {
  const std::size_t bytes = std::strtoull(count > 1 ? arguments[1] : "64", nullptr, 10) << 20;
  static unsigned* pieces[kMost];
  unsigned long long* wrong = nullptr;
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  for (std::size_t at = 0; at < bytes; at += kPiece)
    CHECK(cudaMalloc(&pieces[at / kPiece], kPiece < bytes - at ? kPiece : bytes - at));
  const unsigned times = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 1;
  char line[16];
  unsigned round = 0;
  do {
    const double begin = seconds();
    CHECK(cudaMemset(wrong, 0, sizeof *wrong));
    CHECK(cudaDeviceSynchronize());
    const double answered = seconds() - begin;
    for (const unsigned end = round + (round == 0 ? 1 : times); round < end; ++round)
      for (std::size_t at = 0; at < bytes; at += kPiece) {
        const std::size_t words = (kPiece < bytes - at ? kPiece : bytes - at) / sizeof(unsigned);
        renew<<<1024, 256>>>(pieces[at / kPiece], words, at / sizeof(unsigned), round, wrong);
        CHECK(cudaGetLastError());
      }
    unsigned long long errors = 0;
    CHECK(cudaMemcpy(&errors, wrong, sizeof errors, cudaMemcpyDeviceToHost));
    std::printf("{\"answered\": %.6f, \"seconds\": %.6f, \"wrong\": %llu}\n", answered,
                seconds() - begin, errors);
    std::fflush(stdout);
  } while (std::fgets(line, sizeof line, stdin) != nullptr);
}
