#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// Reuse switches are ints, everything else is a 64-bit count.
std::size_t attributeBytes(CUmemPool_attribute attr) {
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return sizeof(int);
    default: return sizeof(cuuint64_t);
  }
}

}  // namespace

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuMemPoolGetAttribute, 16, kOrdered)) return call.status();
  call.encoder().put(number(pool));
  call.encoder().put(attr);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto answer = reply.get<cuuint64_t>();
  std::memcpy(value, &answer, attributeBytes(attr));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t content = 0;
  std::memcpy(&content, value, attributeBytes(attr));
  Call call;
  if (!call.begin(CallNumber::cuMemPoolSetAttribute, 24, kOrdered)) return call.status();
  call.encoder().put(number(pool));
  call.encoder().put(attr);
  call.encoder().put(content);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
