// Function calls on the device: recursion, structures by value, references, mutual calls.
// conformance:
#include "show.h"

struct Pair {
  long long a;
  int b;
  char c;
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ bool odd(int n);
__device__ __noinline__ bool even(int n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(int n) { return n != 0 && even(n - 1); }
__device__ __noinline__ Pair swap(Pair p, int by) { return {p.b + by, int(p.a), char(p.c + 1)}; }
__device__ __noinline__ void change(int& x, const int* list, int n) {
  for (int i = 0; i < n; ++i) x = x * 10 + list[i];
}
__device__ __noinline__ double average(float a, double b, short c, unsigned char d) { return (a + b + c + d) / 4; }

__global__ void run(long long* out) {
  const int i = threadIdx.x;
  long long* mine = out + i * 7;
  mine[0] = fibonacci(i);
  mine[1] = even(i * 3) * 2 + odd(i * 3);
  const Pair pair = swap(swap({i, 2 * i, 'a'}, 5), -1);
  mine[2] = pair.a, mine[3] = pair.b, mine[4] = pair.c;
  int number = i;
  const int list[] = {1, i % 3, 9};
  change(number, list, 3);
  mine[5] = number;
  mine[6] = static_cast<long long>(average(i, 0.5, -3, 200) * 1000);
}

int main() {
  long long *d = nullptr, out[12 * 7];
  SHOW(cudaMalloc(&d, sizeof out));
  run<<<1, 12>>>(d);
  showLaunch("run");
  SHOW(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12 * 7; ++i) std::printf(i % 7 == 6 ? "%lld\n" : "%lld ", out[i]);
}
