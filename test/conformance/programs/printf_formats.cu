// Device printf: formats, long lines, and its place among the lines of the host.
// conformance:
#include "show.h"

__device__ char name[] = "a device string";

__global__ void formats() {
  int count = printf("%d %5d|%-5d|%05d %i %u %x %X %o %c %%\n", -7, 42, 42, 42, 1, 4000000000u, 255, 255, 8, 'z');
  printf("returned %d\n", count);
  printf("%lld %llu %llx %ld %hd\n", -1234567890123ll, 12345678901234567890ull, 0xfeedfacecafebeefull, -5l, short(-3));
  printf("%f %.3f %10.2f|%-10.1f|%e %g %g\n", 1.5, 3.14159, 2.5f, 2.25, 12345.678, 0.0001, 1e20);
  printf("%s|%20s|%-20s|%.4s|%s\n", "literal", name, name, name, "");
  printf("no argument\n");
  printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
         20);
  printf("no newline at the end, ");
}

__global__ void counted(int n) {
  for (int i = 0; i < n; ++i) printf("line %d of thread %d\n", i, threadIdx.x);
}

int main() {
  int x = 0, *p = nullptr;
  cudaEvent_t event = nullptr;
  SHOW(cudaMalloc(&p, sizeof x));
  SHOW(cudaEventCreate(&event));
  std::printf("host A\n");
  formats<<<1, 1>>>();
  SHOW(cudaDeviceSynchronize());
  std::printf("host B\n");
  counted<<<1, 1>>>(3);
  SHOW(cudaStreamSynchronize(nullptr));
  counted<<<1, 1>>>(2);
  SHOW(cudaMemcpy(&x, p, sizeof x, cudaMemcpyDeviceToHost));
  counted<<<1, 1>>>(1);
  cudaEventRecord(event, nullptr);
  SHOW(cudaEventSynchronize(event));
  std::printf("host C\n");
}
