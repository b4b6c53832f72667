// fork before the first CUDA call: both processes use the GPU, each with memory of its own.
// conformance:
#include <sys/wait.h>
#include <unistd.h>

#include "show.h"

__global__ void fill(int* x, int value) { x[threadIdx.x] = value + threadIdx.x; }

static void use(const char* who, int value) {
  int *d = nullptr, x[4] = {};
  std::printf("%s\n", who);
  SHOW(cudaMalloc(&d, sizeof x));
  fill<<<1, 4>>>(d, value);
  showLaunch("fill");
  SHOW(cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost));
  std::printf("%d %d %d %d\n", x[0], x[1], x[2], x[3]);
  std::fflush(stdout);
}

int main() {
  const pid_t child = fork();
  if (child == 0) {
    use("child", 100);
    return 3;
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended with %d\n", WEXITSTATUS(status));
  use("parent", 200);
}
