// cuMemcpy2DUnaligned: rows whose pitches and beginnings are aligned to nothing, between all kinds of memory.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

enum Kind { pageable, pinned, device };
constexpr std::size_t width = 131, height = 29, most = 8192;

struct Memory {
  Kind kind;
  unsigned char* at = nullptr;
  explicit Memory(Kind kind_) : kind(kind_) {
    if (kind == pageable) at = new unsigned char[most];
    if (kind == pinned) EXPECT_OK(cudaMallocHost(&at, most));
    if (kind == device) EXPECT_OK(cudaMalloc(&at, most));
  }
  ~Memory() {
    if (kind == pageable) delete[] at;
    if (kind == pinned) EXPECT_OK(cudaFreeHost(at));
    if (kind == device) EXPECT_OK(cudaFree(at));
  }
};

static CUmemorytype typeOf(Kind kind, bool unified) {
  if (unified) return CU_MEMORYTYPE_UNIFIED;
  return kind == device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static void check(Memory& to, Memory& from, std::size_t pitch, bool unified) {
  constexpr std::size_t x = 5, y = 3;
  std::vector<unsigned char> source(most), wanted(most, 0xcc), got(most);
  for (std::size_t i = 0; i < most; ++i) source[i] = i * 7 + i / 256;
  EXPECT_OK(cudaMemcpy(from.at, source.data(), most, cudaMemcpyDefault));
  EXPECT_OK(cudaMemcpy(to.at, wanted.data(), most, cudaMemcpyDefault));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = typeOf(from.kind, unified), copy.dstMemoryType = typeOf(to.kind, unified);
  copy.srcHost = from.at, copy.dstHost = to.at;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from.at), copy.dstDevice = reinterpret_cast<CUdeviceptr>(to.at);
  copy.srcPitch = pitch, copy.dstPitch = pitch + 11;
  copy.srcXInBytes = x, copy.srcY = y, copy.dstXInBytes = 1, copy.dstY = 2;
  copy.WidthInBytes = width, copy.Height = height;
  EXPECT_DRIVER(cuMemcpy2DUnaligned(&copy));
  for (std::size_t row = 0; row < height; ++row)
    std::memcpy(&wanted[(2 + row) * (pitch + 11) + 1], &source[(y + row) * pitch + x], width);
  EXPECT_OK(cudaMemcpy(got.data(), to.at, most, cudaMemcpyDefault));
  EXPECT(got == wanted);
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  for (Kind from : {pageable, pinned, device}) {
    for (Kind to : {pageable, pinned, device}) {
      Memory source(from), destination(to);
      for (bool unified : {false, true}) {
        check(destination, source, 137, unified);
        check(destination, source, 199, unified);
      }
    }
  }
  CUDA_MEMCPY2D none{};
  none.srcMemoryType = none.dstMemoryType = CU_MEMORYTYPE_HOST;
  EXPECT_DRIVER(cuMemcpy2DUnaligned(&none));
  EXPECT(cuMemcpy2DUnaligned(nullptr) != CUDA_SUCCESS);
  return verdict();
}
