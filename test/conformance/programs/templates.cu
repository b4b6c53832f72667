// Templates, functors, function pointers and virtual functions in device code.
// conformance:
#include "show.h"

template <typename T, int N>
struct Polynomial {
  T coefficients[N];
  __device__ T operator()(T x) const {
    T value = 0;
    for (int i = N - 1; i >= 0; --i) value = value * x + coefficients[i];
    return value;
  }
};

template <typename T, typename F>
__global__ void apply(T* x, F f) {
  x[threadIdx.x] = f(x[threadIdx.x]);
}

template <typename T, typename F>
static void show(const char* what, F f) {
  T x[8], *d = nullptr;
  for (int i = 0; i < 8; ++i) x[i] = T(i) - T(3);
  cudaMalloc(&d, sizeof x);
  cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice);
  apply<<<1, 8>>>(d, f);
  std::printf("%s: %s;", what, resultName(cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost)));
  for (T value : x) std::printf(" %g", double(value));
  std::printf("\n");
  cudaFree(d);
}

using Operation = int (*)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int power(int a, int b) { return b == 0 ? 1 : a * power(a, b - 1); }
__device__ Operation operations[] = {plus, times, power};

__global__ void callThroughTable(int* out) { out[threadIdx.x] = operations[threadIdx.x % 3](threadIdx.x + 2, 3); }
__global__ void callGiven(int* out, Operation operation) { *out = operation(6, 7); }

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
  int length;
  __device__ explicit Strip(int l) : length(l) {}
  __device__ int area() const override { return 2 * length; }
};

__global__ void virtualCalls(int* out) {
  Square square(threadIdx.x);
  Strip strip(threadIdx.x);
  const Shape* shape = threadIdx.x % 2 ? static_cast<const Shape*>(&square) : &strip;
  out[threadIdx.x] = shape->area();
}

static void printInts(const char* what, const int* d) {
  int out[8];
  std::printf("%s: %s;", what, resultName(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost)));
  for (int value : out) std::printf(" %d", value);
  std::printf("\n");
}

int main() {
  show<int>("int", Polynomial<int, 3>{{1, -2, 3}});
  show<float>("float", Polynomial<float, 4>{{0.5f, 0, 0.25f, 1}});
  show<double>("double", Polynomial<double, 2>{{0.125, 2}});
  show<short>("short", Polynomial<short, 2>{{100, 300}});
  int* d = nullptr;
  SHOW(cudaMalloc(&d, 32));
  SHOW(cudaMemset(d, 0, 32));
  callThroughTable<<<1, 8>>>(d);
  printInts("through a table", d);
  Operation given[3] = {};
  SHOW(cudaMemcpyFromSymbol(given, operations, sizeof given));
  callGiven<<<1, 1>>>(d, given[1]);
  printInts("given by the host", d);
  virtualCalls<<<1, 8>>>(d);
  printInts("virtual", d);
  SHOW(cudaFree(d));
}
