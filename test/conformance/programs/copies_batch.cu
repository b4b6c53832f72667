// Batches of copies: the calls of CUDA 12.8 and of CUDA 13, with pageable, pinned and device memory and arrays, and each order in which a source may be read.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

using Batch12 = CUresult (*)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t, size_t*, CUstream);
using Boxes12 = CUresult (*)(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long, CUstream);

template <class Function>
static Function find(const char* name) {
  void* function = nullptr;
  EXPECT_DRIVER(cuGetProcAddress(name, &function, 12080, 0, nullptr));
  return reinterpret_cast<Function>(function);
}

static CUdeviceptr at(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

static CUmemcpyAttributes order(CUmemcpySrcAccessOrder order) {
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = order;
  return attributes;
}

constexpr std::size_t n = 3000, bytes = n * sizeof(int);

static std::vector<int> numbers(int first) {
  std::vector<int> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = first + int(i);
  return values;
}

__global__ void addOne(int* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < int(n)) x[i] += 1;
}

static void lines(CUstream stream, bool old) {
  int *a = nullptr, *b = nullptr, *pinned = nullptr;
  EXPECT_OK(cudaMalloc(&a, bytes));
  EXPECT_OK(cudaMalloc(&b, bytes));
  EXPECT_OK(cudaMallocHost(&pinned, bytes));
  std::vector<int> first = numbers(1), out(n);
  const std::vector<int> second = numbers(50'000);
  std::memcpy(pinned, second.data(), bytes);
  CUdeviceptr to[] = {at(a), at(b)}, from[] = {at(first.data()), at(pinned)};
  std::size_t sizes[] = {bytes, bytes}, begins[] = {0, 1}, failed = 17;
  CUmemcpyAttributes attributes[] = {order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL), order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)};
  static const auto batch12 = find<Batch12>("cuMemcpyBatchAsync");
  const auto batch = [&](std::size_t count, std::size_t kinds, CUstream in) {
    return old ? batch12(to, from, sizes, count, attributes, begins, kinds, &failed, in)
               : cuMemcpyBatchAsync(to, from, sizes, count, attributes, begins, kinds, in);
  };
  EXPECT_DRIVER(batch(2, 2, stream));
  first.assign(n, 0);  // has been read during the call
  addOne<<<(n + 255) / 256, 256, 0, stream>>>(a);
  to[0] = at(out.data()), from[0] = at(a), to[1] = at(pinned), from[1] = at(a);
  attributes[0] = order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
  EXPECT_DRIVER(batch(2, 1, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(out == numbers(2));
  EXPECT(std::memcmp(pinned, out.data(), bytes) == 0);
  EXPECT_OK(cudaMemcpy(out.data(), b, bytes, cudaMemcpyDefault));
  EXPECT(out == second);
  // Work that was given before writes the source.
  to[0] = at(first.data()), from[0] = at(a);
  to[1] = at(b), from[1] = at(first.data());
  EXPECT_DRIVER(batch(1, 1, stream));
  EXPECT_OK(cudaMemcpyAsync(first.data(), a, bytes, cudaMemcpyDefault, stream));
  std::swap(to[0], to[1]), std::swap(from[0], from[1]);
  EXPECT_DRIVER(batch(1, 1, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT_OK(cudaMemcpy(out.data(), b, bytes, cudaMemcpyDefault));
  EXPECT(out == numbers(2));
  // Pinned memory that is read during the call may change at once, although the stream is busy.
  int* much = nullptr;
  constexpr std::size_t muchBytes = std::size_t{64} << 20;
  EXPECT_OK(cudaMalloc(&much, muchBytes));
  std::memcpy(pinned, second.data(), bytes);
  for (int i = 0; i < 8; ++i) EXPECT_OK(cudaMemsetAsync(much, i, muchBytes, stream));
  to[0] = at(a), from[0] = at(pinned);
  attributes[0] = order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
  EXPECT_DRIVER(batch(1, 1, stream));
  std::memset(pinned, 0, bytes);
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT_OK(cudaMemcpy(out.data(), a, bytes, cudaMemcpyDefault));
  EXPECT(out == second);
  EXPECT_OK(cudaFree(much));
  // What is wrong.
  EXPECT(batch(0, 1, stream) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(batch(1, 2, stream) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(batch(1, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(batch(1, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
  begins[0] = 1;
  EXPECT(batch(2, 1, stream) == CUDA_ERROR_INVALID_VALUE);
  begins[0] = 0;
  attributes[0] = order(CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
  EXPECT(batch(1, 1, stream) == CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cudaFree(a));
  EXPECT_OK(cudaFree(b));
  EXPECT_OK(cudaFreeHost(pinned));
}

static CUmemcpy3DOperand inMemory(const void* memory, std::size_t row, std::size_t rows) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operand.op.ptr.ptr = at(memory), operand.op.ptr.rowLength = row, operand.op.ptr.layerHeight = rows;
  return operand;
}

static CUmemcpy3DOperand inArray(CUarray array, std::size_t x, std::size_t y, std::size_t z) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  operand.op.array.array = array, operand.op.array.offset = {x, y, z};
  return operand;
}

static CUDA_MEMCPY3D_BATCH_OP copyOf(CUmemcpy3DOperand to, CUmemcpy3DOperand from, CUextent3D extent) {
  CUDA_MEMCPY3D_BATCH_OP operation{};
  operation.dst = to, operation.src = from, operation.extent = extent;
  operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return operation;
}

static void boxes(CUstream stream, bool old) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{20, 10, 15, CU_AD_FORMAT_SIGNED_INT32, 1, 0};
  CUarray a = nullptr, b = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&a, &descriptor));
  EXPECT_DRIVER(cuArray3DCreate(&b, &descriptor));
  int *device = nullptr, *pinned = nullptr;
  EXPECT_OK(cudaMalloc(&device, bytes));
  EXPECT_OK(cudaMallocHost(&pinned, bytes));
  const std::vector<int> values = numbers(7), others = numbers(99'000);
  std::vector<int> out(n), back(n);
  std::memcpy(pinned, others.data(), bytes);
  static const auto boxes12 = find<Boxes12>("cuMemcpy3DBatchAsync");
  std::size_t failed = 17;
  const auto batch = [&](std::size_t count, CUDA_MEMCPY3D_BATCH_OP* operations) {
    return old ? boxes12(count, operations, &failed, 0, stream) : cuMemcpy3DBatchAsync(count, operations, 0, stream);
  };
  // The whole of each array, in elements; bytes where there is no array.
  CUDA_MEMCPY3D_BATCH_OP in[] = {
      copyOf(inArray(a, 0, 0, 0), inMemory(values.data(), 20, 10), {20, 10, 15}),
      copyOf(inArray(b, 0, 0, 0), inMemory(pinned, 0, 0), {20, 10, 15}),
      copyOf(inMemory(device, 80, 10), inMemory(pinned, 80, 10), {80, 10, 15}),
  };
  EXPECT_DRIVER(batch(3, in));
  CUDA_MEMCPY3D_BATCH_OP inside = copyOf(inArray(b, 3, 2, 1), inArray(a, 5, 4, 3), {10, 6, 7});
  EXPECT_DRIVER(batch(1, &inside));
  CUDA_MEMCPY3D_BATCH_OP leave[] = {
      copyOf(inMemory(out.data(), 0, 0), inArray(b, 0, 0, 0), {20, 10, 15}),
      copyOf(inMemory(back.data(), 80, 10), inMemory(device, 80, 10), {80, 10, 15}),
  };
  EXPECT_DRIVER(batch(2, leave));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(back == others);
  std::vector<int> wanted = others;
  for (int z = 0; z < 7; ++z) {
    for (int y = 0; y < 6; ++y)
      std::memcpy(&wanted[((z + 1) * 10 + y + 2) * 20 + 3], &values[((z + 3) * 10 + y + 4) * 20 + 5], 40);
  }
  EXPECT(out == wanted);
  EXPECT(batch(0, in) == CUDA_ERROR_INVALID_VALUE);
  inside.extent.width = 30;
  EXPECT(batch(1, &inside) == CUDA_ERROR_INVALID_VALUE);
  EXPECT_DRIVER(cuArrayDestroy(a));
  EXPECT_DRIVER(cuArrayDestroy(b));
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFreeHost(pinned));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  CUstream stream = nullptr;
  EXPECT_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (bool old : {false, true}) {
    lines(stream, old);
    boxes(stream, old);
  }
  EXPECT_DRIVER(cuStreamDestroy(stream));
  return verdict();
}
