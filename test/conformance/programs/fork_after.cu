// fork after CUDA was used: the child cannot use it, the parent goes on as if nothing had happened.
// conformance:
#include <sys/wait.h>
#include <unistd.h>

#include "show.h"

__global__ void increment(int* x) { ++*x; }

int main() {
  int *d = nullptr, x = 41;
  cudaStream_t stream = nullptr;
  SHOW(cudaMalloc(&d, sizeof x));
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaMemcpy(d, &x, sizeof x, cudaMemcpyHostToDevice));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* other = nullptr;
    std::printf("in the child\n");
    SHOW(cudaMalloc(&other, 16));
    SHOW(cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaGetLastError());
    std::fflush(stdout);
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended with %d\n", WEXITSTATUS(status));
  increment<<<1, 1, 0, stream>>>(d);
  SHOW(cudaGetLastError());
  SHOW(cudaMemcpyAsync(&x, d, sizeof x, cudaMemcpyDeviceToHost, stream));
  SHOW(cudaStreamSynchronize(stream));
  std::printf("x = %d\n", x);
  SHOW(cudaStreamDestroy(stream));
  SHOW(cudaFree(d));
}
