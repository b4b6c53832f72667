// Streams in a capture: their calls become nodes, and events join other streams to the capture.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "native/simulator/capture.h"
#include "native/simulator/graph.h"
#include "native/simulator/stream.h"

namespace simulator {

struct Event;

/// The position of a stream in a capture. An event that was recorded there keeps a copy.
struct StreamCapture {
  std::shared_ptr<Capture> capture;
  std::vector<Edge> dependencies;  ///< of the next node
  /// The same for cuStreamGetCaptureInfo.
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> data;
};

/// For calls that submit work: if the stream captures, adds the node that make(Work&) describes.
/// Empty: the stream does not capture, and the call goes on.
std::optional<CUresult> captured(Stream& stream, const std::function<CUresult(Work&)>& make);
/// For calls that cannot be captured: an error if the stream captures, which invalidates the
/// capture, or if it is the legacy stream and a blocking stream of its context does.
CUresult refusedInCapture(Stream& stream);
/// For calls that wait for a stream: refusedInCapture() and unsafeInCapture().
CUresult waitInCapture(Stream& stream);
/// For calls that wait for a context.
CUresult waitInCapture(Context& context);
/// For calls that ask about an event.
CUresult waitInCapture(Event& event);

/// cuEventRecord and cuStreamWaitEvent. Empty: as for captured().
std::optional<CUresult> captureRecord(const std::shared_ptr<Event>& event, Stream& stream,
                                      unsigned flags);
std::optional<CUresult> captureWait(const std::shared_ptr<Event>& event, Stream& stream,
                                    unsigned flags);

/// Ends the captures that a stream, or a context, takes with it.
void leaveCapture(Stream& stream);
void leaveCaptures(Context& context);

/// The stream's position; null if it does not capture. For the legacy stream, an error while a
/// blocking stream of its context captures. Requires graphMutex().
CUresult positionOf(Stream& stream, std::shared_ptr<StreamCapture>& position);
/// Adds dependencies of the next node. Requires graphMutex().
void addDependencies(StreamCapture& position, const std::vector<Edge>& more);
/// Ends a capture of which nothing is left. Requires graphMutex().
void discard(Capture& capture);
/// Ends a capture. Requires graphMutex().
void finish(Capture& capture);

}  // namespace simulator
