#pragma once

#include "driver.h"

namespace worker {

/// Whether the driver captures work for the stream, or refuses it because of a capture. The legacy
/// stream answers with an error while a stream that it waits for captures, and leaves that capture
/// alone.
inline bool takesPartInCapture(const Driver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing != nullptr &&
         (driver.cuStreamIsCapturing(stream, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
          status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/// Whether the driver refuses a question because of a capture, which says nothing of the work.
inline bool isOfCapture(CUresult status) {
  return status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace worker
