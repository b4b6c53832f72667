#include <cstring>

#include "interposer/memory/managed_memory.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

/// The worker answers with exactly the bytes that the driver wrote, so no table of sizes is needed
/// here.
CUresult ask(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (managedAttribute(data, attribute, ptr)) return CUDA_SUCCESS;
  Call call;
  if (!call.begin(CallNumber::cuPointerGetAttribute, 16, kOrdered)) return call.status();
  call.encoder().put(attribute);
  call.encoder().put(ptr);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto value = reply.getBytes(64);
  std::memcpy(data, value.data(), value.size());
  return reply.ok() ? CUDA_SUCCESS : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/// Whether the address is certainly of memory that lives. Triton asks for the device pointer of
/// each argument before each launch.
bool isDeviceMemory(CUdeviceptr address) {
  return !Session::current()->faulted() && isAllocated(address, 1);
}

/// cuPointerGetAttributes returns empty values where the query of a single attribute fails
/// (recorded). For memory that CUDA does not know, `unknown` is the address itself.
void describeMissing(void* data, CUpointer_attribute attribute, CUdeviceptr unknown) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: std::memset(data, 0, 8); break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: std::memcpy(data, &unknown, sizeof unknown); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = -2; break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      std::memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
      break;
    default: std::memset(data, 0, 4); break;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER && isDeviceMemory(ptr))
    return std::memcpy(data, &ptr, sizeof ptr), CUDA_SUCCESS;
  return ask(data, attribute, ptr);
}

/// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a bool of four bytes, is the one attribute that can be set.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned content = 0;
  std::memcpy(&content, value, sizeof content);
  Call call;
  if (!call.begin(CallNumber::cuPointerSetAttribute, 24, kOrdered)) return call.status();
  call.encoder().put(attribute);
  call.encoder().put(ptr);
  call.encoder().put(content);
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (numAttributes == 0 || attributes == nullptr || data == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned type = 0;
  const CUresult known = ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr);
  if (known != CUDA_SUCCESS && known != CUDA_ERROR_INVALID_VALUE) return known;
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (known == CUDA_SUCCESS && ask(data[i], attributes[i], ptr) == CUDA_SUCCESS) continue;
    describeMissing(data[i], attributes[i], known == CUDA_SUCCESS ? 0 : ptr);
  }
  return CUDA_SUCCESS;
}

}  // namespace interposer
