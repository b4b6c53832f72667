// When the end of a capture answers that a stream has not been joined. Work that the program adds to the graph itself
// counts differently from work that a stream captures.
// conformance:
#include "show.h"

__global__ void nothing() {}

/// Streams of one capture: `origin`, which began it, `other`, which has waited for it, and `third`, which has not.
struct Fork {
  cudaStream_t origin = nullptr, other = nullptr, third = nullptr;
  cudaEvent_t event = nullptr;

  void capture(cudaStream_t stream) { nothing<<<1, 1, 0, stream>>>(); }
  void wait(cudaStream_t waiting, cudaStream_t recorded) {
    cudaEventRecord(event, recorded);
    cudaStreamWaitEvent(waiting, event, 0);
  }
  /// Makes `stream` continue behind nothing.
  void forget(cudaStream_t stream) {
    cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
  }
  /// Adds an empty node behind the last work of `behind`, or behind nothing, and makes `stream` continue behind it.
  void addNode(cudaStream_t stream, cudaStream_t behind) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* nodes = nullptr;
    cudaGraphNode_t added = nullptr;
    size_t count = 0;
    cudaStreamGetCaptureInfo(behind ? behind : stream, &status, nullptr, &graph, &nodes, nullptr, &count);
    cudaGraphAddEmptyNode(&added, graph, behind ? nodes : nullptr, behind ? count : 0);
    cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies);
  }
};

template <typename Work>
static void show(const char* what, Work work) {
  Fork fork;
  cudaGraph_t graph = nullptr;
  size_t nodes = 0;
  cudaStreamCreateWithFlags(&fork.origin, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&fork.other, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&fork.third, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork.event, cudaEventDisableTiming);
  cudaStreamBeginCapture(fork.origin, cudaStreamCaptureModeRelaxed);
  fork.capture(fork.origin);
  fork.wait(fork.other, fork.origin);
  work(fork);
  const char* before = resultName(cudaGetLastError());
  const char* ended = resultName(cudaStreamEndCapture(fork.origin, &graph));
  cudaGetLastError();
  if (graph) cudaGraphGetNodes(graph, nullptr, &nodes);
  std::printf("%s: %s, %s, %zu nodes\n", what, before, ended, nodes);
  if (graph) cudaGraphDestroy(graph);
  cudaEventDestroy(fork.event);
  if (fork.other) cudaStreamDestroy(fork.other);
  cudaStreamDestroy(fork.third);
  cudaStreamDestroy(fork.origin);
}

int main() {
  show("the other stream captured nothing", [](Fork&) {});
  show("it captured a kernel", [](Fork& f) { f.capture(f.other); });
  show("a kernel, and the origin waited", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
  });
  show("a kernel, the origin waited, another kernel", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
    f.capture(f.other);
  });
  show("a kernel, then behind nothing", [](Fork& f) {
    f.capture(f.other);
    f.forget(f.other);
  });
  show("behind nothing, then a kernel", [](Fork& f) {
    f.forget(f.other);
    f.capture(f.other);
  });
  show("behind a node of its own", [](Fork& f) { f.addNode(f.other, nullptr); });
  show("behind a node behind the origin's kernel", [](Fork& f) { f.addNode(f.other, f.origin); });
  show("behind a node behind its captured kernel", [](Fork& f) {
    f.capture(f.other);
    f.addNode(f.other, f.other);
  });
  show("a kernel behind such a node", [](Fork& f) {
    f.addNode(f.other, f.origin);
    f.capture(f.other);
  });
  show("a kernel behind such a node, and the origin waited", [](Fork& f) {
    f.addNode(f.other, f.origin);
    f.capture(f.other);
    f.wait(f.origin, f.other);
  });
  show("a node behind the other's kernel, behind which the origin continues", [](Fork& f) {
    f.capture(f.other);
    f.addNode(f.origin, f.other);
  });
  show("the origin continues behind nothing", [](Fork& f) { f.forget(f.origin); });
  show("the origin waited, then continues behind nothing", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
    f.forget(f.origin);
  });
  show("the other stream captured a kernel and is destroyed", [](Fork& f) {
    f.capture(f.other);
    cudaStreamDestroy(f.other);
    f.other = nullptr;
  });
  show("it is behind a node of its own and is destroyed", [](Fork& f) {
    f.addNode(f.other, nullptr);
    cudaStreamDestroy(f.other);
    f.other = nullptr;
  });
  show("a kernel, and the origin continues behind nothing", [](Fork& f) {
    f.capture(f.other);
    f.forget(f.origin);
  });
  show("the origin waited, then continues behind nothing, then a kernel of each", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
    f.forget(f.origin);
    f.capture(f.origin);
    f.capture(f.other);
  });
  show("the origin waited, then continues behind nothing with a kernel", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
    f.forget(f.origin);
    f.capture(f.origin);
  });
  show("a kernel, a node behind it, and no stream continues there", [](Fork& f) {
    f.capture(f.other);
    f.addNode(f.third, f.other);
  });
  show("a kernel, and the origin waited for a stream that waited for it", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.third, f.other);
    f.wait(f.origin, f.third);
  });
  show("a kernel, and a third stream waited for it", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.third, f.other);
  });
  show("a kernel, a third stream waited for it, and the other one continues behind nothing", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.third, f.other);
    f.forget(f.other);
  });
  show("the same, and the origin waited for the third", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.third, f.other);
    f.forget(f.other);
    f.wait(f.origin, f.third);
  });
  show("a kernel, then behind nothing, another kernel, and the origin waited", [](Fork& f) {
    f.capture(f.other);
    f.forget(f.other);
    f.capture(f.other);
    f.wait(f.origin, f.other);
  });
  show("the other stream waited again for the origin, which continues behind nothing", [](Fork& f) {
    f.capture(f.other);
    f.wait(f.origin, f.other);
    f.capture(f.origin);
    f.wait(f.other, f.origin);
    f.forget(f.origin);
  });
  return 0;
}
