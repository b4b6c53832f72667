// Objects with virtual functions, made by one kernel and used and deleted by later ones.
// conformance: judges=itself
// conformance: build=rdc flags=-rdc=true judges=itself
#include "expect.h"

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
  __device__ virtual void grow(float factor) = 0;
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
  __device__ void grow(float factor) override { side *= factor; }
};
struct Box : Square {
  float height;
  __device__ Box(float s, float h) : Square(s), height(h) {}
  __device__ ~Box() override { height = -1; }
  __device__ float area() const override { return 2 * Square::area() + 4 * side * height; }
  __device__ void grow(float factor) override {
    Square::grow(factor);
    height += 1;
  }
};
struct Named {
  int name;
  __device__ virtual int twice() const { return 2 * name; }
};
struct Both : Named, Square {
  __device__ Both(int n, float s) : Named{}, Square(s) { name = n; }
  __device__ int twice() const override { return 2 * name + 1; }
  __device__ float area() const override { return Square::area() + name; }
};

__global__ void make(Shape** shapes, Named** names, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  names[i] = nullptr;
  switch (i % 3) {
    case 0: shapes[i] = new Square(i); break;
    case 1: shapes[i] = new Box(i, 2); break;
    default:
      Both* both = new Both(i, 3);
      shapes[i] = both;
      names[i] = both;
  }
}
__global__ void grow(Shape** shapes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) shapes[i]->grow(2);
}
__global__ void measure(Shape* const* shapes, Named* const* names, float* areas, int* doubles, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  areas[i] = shapes[i]->area();
  doubles[i] = names[i] ? names[i]->twice() : 0;
}
__global__ void destroy(Shape** shapes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) delete shapes[i];
}

/// A function pointer that one kernel stores and the next one calls.
using Operation = float (*)(float, float);
__device__ float plus(float a, float b) { return a + b; }
__device__ float times(float a, float b) { return a * b; }
__device__ Operation table[2] = {plus, times};
__global__ void choose(Operation* chosen) { chosen[threadIdx.x] = table[threadIdx.x % 2]; }
__global__ void apply(Operation* chosen, float* out) { out[threadIdx.x] = chosen[threadIdx.x](threadIdx.x, 3); }

int main() {
  constexpr int n = 999;
  Shape** shapes = nullptr;
  Named** names = nullptr;
  float* areas = nullptr;
  int* doubles = nullptr;
  EXPECT_OK(cudaMalloc(&shapes, n * sizeof(Shape*)));
  EXPECT_OK(cudaMalloc(&names, n * sizeof(Named*)));
  EXPECT_OK(cudaMallocHost(&areas, n * sizeof(float)));
  EXPECT_OK(cudaMallocHost(&doubles, n * sizeof(int)));
  for (int run = 0; run < 3; ++run) {
    make<<<8, 128>>>(shapes, names, n);
    grow<<<8, 128>>>(shapes, n);
    measure<<<4, 256>>>(shapes, names, areas, doubles, n);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) {
      const float side = 2.0f * i;
      EXPECT(areas[i] == (i % 3 == 0 ? side * side : i % 3 == 1 ? 2 * side * side + 4 * side * 3 : 36 + i));
      EXPECT(doubles[i] == (i % 3 == 2 ? 2 * i + 1 : 0));
    }
    destroy<<<8, 128>>>(shapes, n);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
  }
  Operation* chosen = nullptr;
  EXPECT_OK(cudaMalloc(&chosen, 64 * sizeof(Operation)));
  choose<<<1, 64>>>(chosen);
  apply<<<1, 64>>>(chosen, areas);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) EXPECT(areas[i] == (i % 2 ? i * 3 : i + 3));
  return verdict();
}
