// Captures: sequences of work that become a graph. What they forbid to all threads is here; what
// they do with streams is in stream_capture.h.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/driver_call.h"

namespace simulator {

struct Context;
struct Graph;
class Stream;

/// One capture, from cuStreamBeginCapture to cuStreamEndCapture. Guarded by graphMutex().
struct Capture {
  Capture(CUstreamCaptureMode mode, std::shared_ptr<Graph> graph, bool ownsGraph,
          std::weak_ptr<Stream> origin, Context& context);

  const std::uint64_t id;  ///< unique in the process
  const CUstreamCaptureMode mode;
  const std::thread::id thread = std::this_thread::get_id();
  std::shared_ptr<Graph> graph;  ///< null after the end, because events keep the capture
  const bool ownsGraph;          ///< the graph was made for the capture
  const std::weak_ptr<Stream> origin;
  Context& context;  ///< of the origin
  bool valid = true;
  bool ended = false;
  std::vector<std::weak_ptr<Stream>> streams;  ///< those that have joined, the origin first
};

/// Whether there is a capture in the process; false is the ordinary, fast case.
bool anyCapture();
/// The captures that have not ended. Requires graphMutex().
std::vector<std::shared_ptr<Capture>>& captures();
void beginCapture(std::shared_ptr<Capture> capture);
/// Ends a capture; its streams no longer capture.
void endCapture(Capture& capture);

/// For calls that a capture cannot see and that a program might need at each launch, or that wait:
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and invalidates the captures that forbid them to this
/// thread. Locks graphMutex(). The calls that use it are those that a driver 580 on an H200
/// forbids.
CUresult unsafeInCapture();

/// Runs the body of such a call: body(Context&).
template <class Body>
CUresult outsideCapture(Body&& body) noexcept {
  return inContext([&](Context& context) -> CUresult {
    const CUresult status = unsafeInCapture();
    return status == CUDA_SUCCESS ? body(context) : status;
  });
}

/// Runs the body of such a call that frees an object, which names its context: body().
template <class Body>
CUresult freeOutsideCapture(Body&& body) noexcept {
  return withoutContext([&]() -> CUresult {
    const CUresult status = unsafeInCapture();
    return status == CUDA_SUCCESS ? body() : status;
  });
}

}  // namespace simulator
