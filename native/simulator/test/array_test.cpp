// Arrays and mipmapped arrays, and copies of them: single, batched, captured, in graphs.
#include <numeric>
#include <vector>

#include "native/simulator/test/driver_test.h"

namespace {

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth,
                               unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

CUarray makeArray(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  CUarray array = nullptr;
  OK(DRIVER(cuArray3DCreate_v2)(&array, &descriptor));
  return array;
}

CUresult attempt(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  CUarray array = nullptr;
  return DRIVER(cuArray3DCreate_v2)(&array, &descriptor);
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

CUDA_MEMCPY3D toArray(CUarray array, const float* host, std::size_t width, std::size_t height,
                      std::size_t depth) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = width * sizeof(float);
  copy.srcHeight = height;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  copy.Depth = depth;
  return copy;
}

CUDA_MEMCPY3D fromArray(float* host, CUarray array, std::size_t width, std::size_t height,
                        std::size_t depth) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = width * sizeof(float);
  copy.dstHeight = height;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  copy.Depth = depth;
  return copy;
}

TEST_CASE("arrays have the descriptor that they were created with") {
  usePrimaryContext();
  const CUarray array = makeArray(floats(20, 10, 6, CUDA_ARRAY3D_LAYERED));
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  OK(DRIVER(cuArray3DGetDescriptor_v2)(&whole, array));
  CHECK(whole.Width == 20);
  CHECK(whole.Height == 10);
  CHECK(whole.Depth == 6);
  CHECK(whole.Flags == CUDA_ARRAY3D_LAYERED);
  CUDA_ARRAY_DESCRIPTOR plane{};
  OK(DRIVER(cuArrayGetDescriptor_v2)(&plane, array));
  CHECK(plane.Height == 10);
  CHECK(plane.Format == CU_AD_FORMAT_FLOAT);
  OK(DRIVER(cuArrayDestroy)(array));
}

TEST_CASE("extents, formats and flags that do not fit together are refused") {
  usePrimaryContext();
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(0, 0, 0)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(131073, 0, 0)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(8, 0, 4)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(8, 8, 0, CUDA_ARRAY3D_LAYERED)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(8, 8, 2049, CUDA_ARRAY3D_LAYERED)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(8, 4, 6, CUDA_ARRAY3D_CUBEMAP)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt(floats(8, 8, 5, CUDA_ARRAY3D_CUBEMAP)));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         attempt(floats(8, 8, 8, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt({8, 8, 0, CU_AD_FORMAT_FLOAT, 3, 0}));
  EXPECT(CUDA_ERROR_INVALID_VALUE, attempt({8, 8, 0, static_cast<CUarray_format>(7), 1, 0}));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArray3DCreate_v2)(nullptr, nullptr));
}

TEST_CASE("the memory of arrays is counted") {
  usePrimaryContext();
  std::size_t before = 0, during = 0, after = 0, total = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&before, &total));
  const CUarray array = makeArray(floats(1024, 1024, 4));
  OK(DRIVER(cuMemGetInfo_v2)(&during, &total));
  OK(DRIVER(cuArrayDestroy)(array));
  OK(DRIVER(cuMemGetInfo_v2)(&after, &total));
  CHECK(before - during == 16 << 20);
  CHECK(after == before);
}

TEST_CASE("a part of a volume is copied in and out") {
  usePrimaryContext();
  const CUarray array = makeArray(floats(8, 4, 3));
  const auto values = counting(8 * 4 * 3);
  const auto in = toArray(array, values.data(), 8, 4, 3);
  OK(DRIVER(cuMemcpy3D_v2)(&in));
  std::vector<float> part(2 * 2 * 2);
  auto out = fromArray(part.data(), array, 2, 2, 2);
  out.srcXInBytes = 3 * sizeof(float);
  out.srcY = 1;
  out.srcZ = 1;
  OK(DRIVER(cuMemcpy3D_v2)(&out));
  CHECK(part == std::vector<float>{44, 45, 52, 53, 76, 77, 84, 85});
  out.srcXInBytes = 2;  // parts of elements are copied, too
  OK(DRIVER(cuMemcpy3D_v2)(&out));
  out.srcXInBytes = 7 * sizeof(float);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpy3D_v2)(&out));
  out.srcXInBytes = 0;
  out.srcZ = 2;
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpy3D_v2)(&out));
  OK(DRIVER(cuArrayDestroy)(array));
}

TEST_CASE("lines are copied between arrays, the host and the device") {
  usePrimaryContext();
  const CUarray a = makeArray(floats(16, 0, 0)), b = makeArray(floats(16, 0, 0));
  const auto values = counting(16);
  std::vector<float> result(16);
  CUdeviceptr memory = 0;
  OK(DRIVER(cuMemAlloc_v2)(&memory, 64));
  OK(DRIVER(cuMemcpyHtoA_v2)(a, 0, values.data(), 64));
  OK(DRIVER(cuMemcpyAtoA_v2)(b, 16, a, 0, 48));
  OK(DRIVER(cuMemcpyAtoD_v2)(memory, b, 16, 48));
  OK(DRIVER(cuMemcpyDtoA_v2)(b, 0, memory, 16));
  OK(DRIVER(cuMemcpyAtoH_v2)(result.data(), b, 0, 64));
  CHECK(result[0] == 1);
  CHECK(result[3] == 4);
  CHECK(result[4] == 1);
  CHECK(result[15] == 12);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyAtoH_v2)(result.data(), b, 4, 64));
  OK(DRIVER(cuMemcpyAtoH_v2)(result.data(), b, 0, 2));
  OK(DRIVER(cuMemFree_v2)(memory));
  OK(DRIVER(cuArrayDestroy)(a));
  OK(DRIVER(cuArrayDestroy)(b));
}

TEST_CASE("levels of mipmapped arrays halve") {
  usePrimaryContext();
  CUmipmappedArray mipmapped = nullptr;
  const auto descriptor = floats(20, 8, 0);
  OK(DRIVER(cuMipmappedArrayCreate)(&mipmapped, &descriptor, 100));
  const std::size_t widths[] = {20, 10, 5, 2, 1}, heights[] = {8, 4, 2, 1, 1};
  CUarray level = nullptr;
  for (unsigned i = 0; i < 5; ++i) {
    CUDA_ARRAY_DESCRIPTOR plane{};
    OK(DRIVER(cuMipmappedArrayGetLevel)(&level, mipmapped, i));
    OK(DRIVER(cuArrayGetDescriptor_v2)(&plane, level));
    CHECK(plane.Width == widths[i]);
    CHECK(plane.Height == heights[i]);
    const auto values = counting(plane.Width * plane.Height);
    const auto in = toArray(level, values.data(), plane.Width, plane.Height, 1);
    OK(DRIVER(cuMemcpy3D_v2)(&in));
  }
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMipmappedArrayGetLevel)(&level, mipmapped, 5));
  std::vector<float> second(10);
  OK(DRIVER(cuMipmappedArrayGetLevel)(&level, mipmapped, 2));
  const auto out = fromArray(second.data(), level, 5, 2, 1);
  OK(DRIVER(cuMemcpy3D_v2)(&out));
  CHECK(second == counting(10));
  OK(DRIVER(cuMipmappedArrayDestroy)(mipmapped));
}

TEST_CASE("ordinary arrays have no planes, tiles and requirements") {
  usePrimaryContext();
  const CUarray array = makeArray(floats(8, 8, 0));
  CUarray plane = nullptr;
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  CUDA_ARRAY_MEMORY_REQUIREMENTS requirements{};
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayGetPlane)(&plane, array, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayGetSparseProperties)(&tiles, array));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayGetMemoryRequirements)(&requirements, array, 0));
  OK(DRIVER(cuArrayDestroy)(array));
}

TEST_CASE("a video frame has planes") {
  usePrimaryContext();
  constexpr unsigned kVideo = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
  CHECK(attempt({64, 32, 0, CU_AD_FORMAT_NV12, 3, 0}) != CUDA_SUCCESS);
  CHECK(attempt({64, 33, 0, CU_AD_FORMAT_NV12, 3, kVideo}) != CUDA_SUCCESS);
  const CUDA_ARRAY3D_DESCRIPTOR video{64, 32, 0, CU_AD_FORMAT_NV12, 3, kVideo};
  CUarray frame = nullptr;
  if (DRIVER(cuArray3DCreate_v2)(&frame, &video) != CUDA_SUCCESS)
    return unit::skip("the driver makes no such frames");
  CUarray colours = nullptr, none = nullptr;
  CUDA_ARRAY_DESCRIPTOR plane{};
  OK(DRIVER(cuArrayGetPlane)(&colours, frame, 1));
  OK(DRIVER(cuArrayGetDescriptor_v2)(&plane, colours));
  CHECK(plane.Width == 32);
  CHECK(plane.Height == 16);
  CHECK(plane.NumChannels == 2);
  std::vector<float> line(16);
  OK(DRIVER(cuMemcpyAtoH_v2)(line.data(), colours, 0, 64));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyAtoH_v2)(line.data(), frame, 0, 64));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayGetPlane)(&none, frame, 2));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayDestroy)(colours));
  OK(DRIVER(cuArrayDestroy)(frame));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuArrayGetDescriptor_v2)(&plane, colours));
}

TEST_CASE("a captured copy of an array becomes a node that names it") {
  usePrimaryContext();
  const CUarray array = makeArray(floats(8, 2, 0));
  CUdeviceptr memory = 0;
  OK(DRIVER(cuMemAlloc_v2)(&memory, 64));
  const auto values = counting(16);
  OK(DRIVER(cuMemcpyHtoD_v2)(memory, values.data(), 64));
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  auto in = toArray(array, nullptr, 4, 2, 1);
  in.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  in.srcDevice = memory;
  in.dstXInBytes = 4 * sizeof(float);
  OK(DRIVER(cuMemcpy3DAsync_v2)(&in, stream));
  OK(DRIVER(cuStreamEndCapture)(stream, &graph));
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  CUDA_MEMCPY3D shown{};
  OK(DRIVER(cuGraphGetNodes)(graph, &node, &count));
  OK(DRIVER(cuGraphMemcpyNodeGetParams)(node, &shown));
  CHECK(shown.dstMemoryType == CU_MEMORYTYPE_ARRAY);
  CHECK(shown.dstArray == array);
  CHECK(shown.dstXInBytes == 16);
  OK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  OK(DRIVER(cuGraphLaunch)(exec, stream));
  OK(DRIVER(cuStreamSynchronize)(stream));
  std::vector<float> result(16);
  const auto out = fromArray(result.data(), array, 8, 2, 1);
  OK(DRIVER(cuMemcpy3D_v2)(&out));
  CHECK(result[4] == 1);
  CHECK(result[7] == 4);
  CHECK(result[12] == 5);
  OK(DRIVER(cuGraphExecDestroy)(exec));
  OK(DRIVER(cuGraphDestroy)(graph));
  OK(DRIVER(cuMemFree_v2)(memory));
  OK(DRIVER(cuArrayDestroy)(array));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

TEST_CASE("batches copy memory and arrays") {
  usePrimaryContext();
  CUstream stream = nullptr;
  OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const CUarray array = makeArray(floats(4, 4, 0));
  CUdeviceptr memory = 0;
  OK(DRIVER(cuMemAlloc_v2)(&memory, 128));
  const auto values = counting(32);
  const auto host = reinterpret_cast<CUdeviceptr>(values.data());
  CUdeviceptr dsts[] = {memory, memory + 64}, srcs[] = {host, host + 64};
  std::size_t sizes[] = {64, 64}, begins[] = {0}, failed = 7;
  CUmemcpyAttributes attributes[1] = {};
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuMemcpyBatchAsync_v2)(dsts, srcs, sizes, 2, attributes, begins, 1, stream));
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(DRIVER(cuMemcpyBatchAsync)(dsts, srcs, sizes, 2, attributes, begins, 1, &failed, stream));
  CUDA_MEMCPY3D_BATCH_OP op{};
  op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.op.ptr.ptr = memory;
  op.src.op.ptr.rowLength = 8;
  op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  op.dst.op.array.array = array;
  op.dst.op.array.offset = {1, 1, 0};
  op.extent = {3, 2, 1};
  op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(DRIVER(cuMemcpy3DBatchAsync_v2)(1, &op, 0, stream));
  OK(DRIVER(cuStreamSynchronize)(stream));
  std::vector<float> result(16);
  const auto out = fromArray(result.data(), array, 4, 4, 1);
  OK(DRIVER(cuMemcpy3D_v2)(&out));
  CHECK(result[5] == 1);
  CHECK(result[7] == 3);
  CHECK(result[9] == 9);
  op.extent.width = 4;
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpy3DBatchAsync)(1, &op, &failed, 0, stream));
  CHECK(failed == SIZE_MAX);  // an H200 does not name the copy
  OK(DRIVER(cuMemFree_v2)(memory));
  OK(DRIVER(cuArrayDestroy)(array));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

}  // namespace
