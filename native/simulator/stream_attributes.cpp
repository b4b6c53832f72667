// Attributes of streams, and queries of stream capture (no stream ever captures here).
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

DRIVER_CALL cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return onStream(hStream, [&](Context&, Stream&) -> CUresult {
    if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                      cuuint64_t*, CUgraph*, const CUgraphNode**, size_t*) {
  return cuStreamIsCapturing(hStream, captureStatus_out);
}

DRIVER_CALL cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                      cuuint64_t*, CUgraph*, const CUgraphNode**,
                                      const CUgraphEdgeData**, size_t*) {
  return cuStreamIsCapturing(hStream, captureStatus_out);
}

DRIVER_CALL cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return inDriver([&]() -> CUresult {
    if (mode == nullptr || static_cast<unsigned>(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, current);
    return CUDA_SUCCESS;
  });
}
