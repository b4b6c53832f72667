#include "interposer/memory/pinned_copy.h"

#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "wire/copy.h"

namespace interposer {

bool isAllocated(CUdeviceptr address, std::size_t bytes) {
  return Session::current()->deviceRanges.contains(address, bytes);
}

namespace {

bool isDeviceForDriver(CUdeviceptr address) {
  unsigned type = 0;
  return interposer::cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
             CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE;
}

}  // namespace

bool isDevice(CUdeviceptr address) {
  if (isAllocated(address, 1)) return true;
  if (!Session::current()->hasDeviceRanges()) return isDeviceForDriver(address);
  for (const auto& range : wire::deviceRanges()) {
    if (range.contains(address, 1)) return true;
  }
  return false;
}

CUresult copyPinnedHtoD(CUdeviceptr destination, const void* source, std::size_t bytes,
                        CUstream stream, bool synchronise) {
  Call call;
  if (!call.begin(CallNumber::cuMemcpyHtoDAsync_v2, sizeof(wire::CopyFrame) + 16, kOrdered))
    return call.status();
  call.encoder().put(wire::CopyFrame{destination, reinterpret_cast<std::uint64_t>(source), bytes,
                                     number(stream), synchronise, 0});
  call.encoder().putBytes(nullptr, 0);
  wire::Decoder reply;
  return synchronise || !isAllocated(destination, bytes) ? call.wait(reply) : call.enqueue();
}

CUresult copyPinnedDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream,
                        bool synchronise) {
  Call call;
  if (!call.begin(CallNumber::cuMemcpyDtoHAsync_v2, sizeof(wire::CopyFrame), kOrdered))
    return call.status();
  call.encoder().put(wire::CopyFrame{reinterpret_cast<std::uint64_t>(destination), source, bytes,
                                     number(stream), synchronise, 0});
  wire::Decoder reply;
  return synchronise || !isAllocated(source, bytes) ? call.wait(reply) : call.enqueue();
}

}  // namespace interposer
