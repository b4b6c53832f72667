// Linear copies of rows of arrays: cuMemcpyDtoA and its family.
#include "native/simulator/copy_submission.h"
#include "native/simulator/driver_call.h"

using namespace simulator;

namespace {

CUDA_MEMCPY3D row(std::size_t bytes) {
  CUDA_MEMCPY3D request{};
  request.WidthInBytes = bytes;
  request.Height = request.Depth = 1;
  return request;
}

void fromArray(CUDA_MEMCPY3D& request, CUarray array, std::size_t offset) {
  request.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  request.srcArray = array;
  request.srcXInBytes = offset;
}
void toArray(CUDA_MEMCPY3D& request, CUarray array, std::size_t offset) {
  request.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  request.dstArray = array;
  request.dstXInBytes = offset;
}

CUresult copyRow(const CUDA_MEMCPY3D& request, CUstream hStream, bool synchronous) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    Copy copy;
    const CUresult status = describe(request, copy);
    return status == CUDA_SUCCESS ? submit(copy, stream, synchronous) : status;
  });
}

CUDA_MEMCPY3D hostToArray(CUarray array, std::size_t offset, const void* host, std::size_t bytes) {
  CUDA_MEMCPY3D request = row(bytes);
  request.srcMemoryType = CU_MEMORYTYPE_HOST;
  request.srcHost = host;
  toArray(request, array, offset);
  return request;
}

CUDA_MEMCPY3D arrayToHost(void* host, CUarray array, std::size_t offset, std::size_t bytes) {
  CUDA_MEMCPY3D request = row(bytes);
  request.dstMemoryType = CU_MEMORYTYPE_HOST;
  request.dstHost = host;
  fromArray(request, array, offset);
  return request;
}

}  // namespace

DRIVER_CALL cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                            size_t ByteCount) {
  CUDA_MEMCPY3D request = row(ByteCount);
  request.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  request.srcDevice = srcDevice;
  toArray(request, dstArray, dstOffset);
  return copyRow(request, nullptr, true);
}

DRIVER_CALL cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount) {
  CUDA_MEMCPY3D request = row(ByteCount);
  request.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  request.dstDevice = dstDevice;
  fromArray(request, srcArray, srcOffset);
  return copyRow(request, nullptr, true);
}

DRIVER_CALL cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost,
                            size_t ByteCount) {
  return copyRow(hostToArray(dstArray, dstOffset, srcHost, ByteCount), nullptr, true);
}
DRIVER_CALL cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost,
                                 size_t ByteCount, CUstream hStream) {
  return copyRow(hostToArray(dstArray, dstOffset, srcHost, ByteCount), hStream, false);
}

DRIVER_CALL cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copyRow(arrayToHost(dstHost, srcArray, srcOffset, ByteCount), nullptr, true);
}
DRIVER_CALL cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset,
                                 size_t ByteCount, CUstream hStream) {
  return copyRow(arrayToHost(dstHost, srcArray, srcOffset, ByteCount), hStream, false);
}

DRIVER_CALL cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                            size_t ByteCount) {
  CUDA_MEMCPY3D request = row(ByteCount);
  fromArray(request, srcArray, srcOffset);
  toArray(request, dstArray, dstOffset);
  return copyRow(request, nullptr, true);
}
