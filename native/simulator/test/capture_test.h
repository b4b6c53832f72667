// What the tests of captures share.
#pragma once

#include <cstdint>
#include <vector>

#include "native/simulator/test/graph_test.h"

inline constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

inline CUstream createStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  OK(DRIVER(cuStreamCreate)(&stream, flags));
  return stream;
}

inline CUevent createEvent() {
  CUevent event = nullptr;
  OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

inline void begin(CUstream stream, CUstreamCaptureMode mode = kRelaxed) {
  OK(DRIVER(cuStreamBeginCapture_v2)(stream, mode));
}

inline CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  OK(DRIVER(cuStreamEndCapture)(stream, &graph));
  return graph;
}

inline void launchStore(CUstream stream, CUdeviceptr at, std::uint32_t value) {
  Store kernel{storeKernel(), at, value};
  OK(DRIVER(cuLaunchKernel)(storeKernel(), 1, 1, 1, 1, 1, 1, 0, stream, kernel.arguments, nullptr));
}

inline std::vector<CUgraphNode> nodesOf(CUgraph graph) {
  size_t count = 0;
  OK(DRIVER(cuGraphGetNodes)(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  OK(DRIVER(cuGraphGetNodes)(graph, nodes.data(), &count));
  return nodes;
}

inline CUgraphNodeType typeOf(CUgraphNode node) {
  CUgraphNodeType type{};
  OK(DRIVER(cuGraphNodeGetType)(node, &type));
  return type;
}

inline size_t dependencyCount(CUgraphNode node) {
  size_t count = 0;
  OK(DRIVER(cuGraphNodeGetDependencies_v2)(node, nullptr, nullptr, &count));
  return count;
}

inline CUstreamCaptureStatus statusOf(CUstream stream) {
  CUstreamCaptureStatus status{};
  OK(DRIVER(cuStreamIsCapturing)(stream, &status));
  return status;
}
