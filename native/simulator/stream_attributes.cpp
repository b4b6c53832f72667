// Attributes of streams.
#include <algorithm>

#include "native/simulator/driver_call.h"
#include "native/simulator/stream.h"

using namespace simulator;

namespace {

bool known(CUstreamAttrID attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return true;
    default: return false;
  }
}

CUstreamAttrValue initial(const Stream& stream, CUstreamAttrID attribute) {
  CUstreamAttrValue value{};  // the real driver's default
  if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
    value.syncPolicy = static_cast<CUsynchronizationPolicy>(-1);
  if (attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap.remote = 1;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value.priority = stream.priority;
  return value;
}

}  // namespace

DRIVER_CALL cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
                                 CUstreamAttrValue* value_out) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (value_out == nullptr || !known(attr)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(stream.attributesMutex);
    const auto found = stream.attributes.find(attr);
    *value_out = found == stream.attributes.end() ? initial(stream, attr) : found->second;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                 const CUstreamAttrValue* value) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (value == nullptr || !known(attr)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(stream.attributesMutex);
    stream.attributes.insert_or_assign(attr, *value);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuStreamCopyAttributes(CUstream dst, CUstream src) {
  return onStream(src, [&](Context&, Stream& from) {
    return onStream(dst, [&](Context&, Stream& to) -> CUresult {
      if (&from == &to) return CUDA_SUCCESS;
      const std::scoped_lock lock(from.attributesMutex, to.attributesMutex);
      to.attributes = from.attributes;
      return CUDA_SUCCESS;
    });
  });
}
