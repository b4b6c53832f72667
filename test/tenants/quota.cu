// A tenant at its memory limit.
//   quota look                   prints free and total bytes
//   quota fill                   allocates pieces of 1 MiB until none is left, prints their number,
//                                and keeps them until its input ends
//   quota race FILE SELF ROUNDS  two processes, SELF 0 and 1, compete for the last MiB at the same
//                                moment; prints 1 for each round in which it got the MiB
// FILE has 4096 bytes of zeros, in which the two processes wait for each other.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

constexpr std::size_t kPiece = 1 << 20;

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result)), std::exit(1);
}

/// Null if the memory is used up; any other failure ends the program.
void* piece() {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, kPiece);
  if (result != cudaErrorMemoryAllocation) check(result, "cudaMalloc");
  cudaGetLastError();
  return memory;
}

std::vector<void*> fill() {
  std::vector<void*> pieces;
  while (void* next = piece()) pieces.push_back(next);
  return pieces;
}

/// A barrier for two processes.
class Meeting {
 public:
  explicit Meeting(const char* path) {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
    if (page == MAP_FAILED) std::perror(path), std::exit(2);
    arrived_ = static_cast<std::atomic<unsigned>*>(page);
  }
  void wait() {
    arrived_->fetch_add(1);
    for (met_ += 2; arrived_->load() < met_;) sched_yield();
  }

 private:
  std::atomic<unsigned>* arrived_;
  unsigned met_ = 0;
};

int race(Meeting meeting, int self, int rounds) {
  check(cudaFree(nullptr), "cudaFree");
  meeting.wait();
  // One of them leaves exactly one MiB for both.
  std::vector<void*> pieces = self == 0 ? fill() : std::vector<void*>();
  if (self == 0) check(cudaFree(pieces.back()), "cudaFree");
  for (int round = 0; round < rounds; ++round) {
    meeting.wait();
    void* last = piece();
    std::putchar(last != nullptr ? '1' : '0');
    meeting.wait();
    check(cudaFree(last), "cudaFree");
  }
  return 0;
}

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "look") {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return std::printf("%zu %zu\n", available, total), 0;
  }
  if (mode == "fill") {
    std::printf("%zu\n", fill().size());
    std::fflush(stdout);
    return std::getchar(), 0;
  }
  if (mode == "race" && count == 5)
    return race(Meeting(arguments[2]), std::atoi(arguments[3]), std::atoi(arguments[4]));
  return std::fprintf(stderr, "see the head of quota.cu\n"), 2;
}
