// Graphs: their nodes, what they are made into, and what the driver says of them. A graph's memory
// is charged by accounts/graph_memory.h, local memory of its kernels when a node names one.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "call_numbers.h"
#include "native/worker/calls/graph_node.h"
#include "native/worker/session/thread.h"
#include "wire/anonymous_file.h"
#include "wire/graph.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Dependencies of a new node, and the kinds of its edges, if the program said any.
struct Dependencies {
  std::vector<CUgraphNode> nodes;
  std::span<const std::uint64_t> handles;
  std::span<const CUgraphEdgeData> edges;

  bool decode(wire::Decoder& in) {
    handles = in.getArray<std::uint64_t>(wire::kMaxFrameBytes);
    edges = in.getArray<CUgraphEdgeData>(wire::kMaxFrameBytes);
    return edges.empty() || edges.size() == handles.size();
  }
  CUresult resolve(const Thread& thread) {
    for (const std::uint64_t handle : handles) {
      CUgraphNode& node = nodes.emplace_back();
      if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
        return status;
    }
    return CUDA_SUCCESS;
  }
  const CUgraphEdgeData* edgeData() const { return edges.empty() ? nullptr : edges.data(); }
};

/// Writes the handle of a node; 0 for none.
void putNode(Thread& thread, wire::Encoder& out, CUgraphNode node, std::uint64_t graph) {
  out.put<std::uint64_t>(
      node == nullptr || thread.full() ? 0 : thread.add(wire::HandleKind::graphNode, node, graph));
}

/// A list of the driver, as a whole: it gives no part of one.
struct Elements {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphNode> others;  ///< where the edges lead
  std::vector<CUgraphEdgeData> edges;

  /// `ask` is called without arrays for the number, then with them.
  template <class Ask>
  CUresult read(bool pairs, bool withEdges, Ask ask) {
    size_t count = 0;
    if (const CUresult status = ask(nullptr, nullptr, nullptr, &count); status != CUDA_SUCCESS)
      return status;
    nodes.resize(count);
    others.resize(pairs ? count : 0);
    edges.resize(withEdges ? count : 0);
    if (count == 0) return CUDA_SUCCESS;
    const CUresult status = ask(nodes.data(), others.data(), edges.data(), &count);
    return status != CUDA_SUCCESS || count == nodes.size() ? status : CUDA_ERROR_UNKNOWN;
  }
};

CUresult readElements(const Thread& thread, wire::GraphElements which, CUgraph graph,
                      CUgraphNode node, Elements& elements) {
  const Driver& driver = thread.driver;
  using enum wire::GraphElements;
  const auto read = [&](bool pairs, bool edges, auto ask) {
    return elements.read(pairs, edges, ask);
  };
  switch (which) {
    case nodes:
      return read(false, false, [&](CUgraphNode* to, CUgraphNode*, CUgraphEdgeData*, size_t* n) {
        return driver.cuGraphGetNodes(graph, to, n);
      });
    case roots:
      return read(false, false, [&](CUgraphNode* to, CUgraphNode*, CUgraphEdgeData*, size_t* n) {
        return driver.cuGraphGetRootNodes(graph, to, n);
      });
    case edges:
      return read(true, true,
                  [&](CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* n) {
                    return driver.cuGraphGetEdges_v2(graph, from, to, data, n);
                  });
    case dependencies:
      return read(false, true,
                  [&](CUgraphNode* to, CUgraphNode*, CUgraphEdgeData* data, size_t* n) {
                    return driver.cuGraphNodeGetDependencies_v2(node, to, data, n);
                  });
    case dependents:
      return read(false, true,
                  [&](CUgraphNode* to, CUgraphNode*, CUgraphEdgeData* data, size_t* n) {
                    return driver.cuGraphNodeGetDependentNodes_v2(node, to, data, n);
                  });
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// The handle of a node that the driver names: one that the program knows, or a node of this very
/// graph. The handle of another one, such as a node of a child graph, would outlive its node: 0.
std::uint64_t handleOf(Thread& thread, CUgraphNode node, std::uint64_t graph) {
  auto& handles = thread.session.handles;
  if (const auto known = handles.handleOf(wire::HandleKind::graphNode, node); known != 0)
    return known;
  Elements own;
  auto* const of = static_cast<CUgraph>(handles.find(wire::HandleKind::graph, graph));
  if (node == nullptr || thread.full() ||
      readElements(thread, wire::GraphElements::nodes, of, nullptr, own) != CUDA_SUCCESS ||
      std::ranges::find(own.nodes, node) == own.nodes.end())
    return 0;
  return thread.add(wire::HandleKind::graphNode, node, graph);
}

/// Whether a stream captures into the graph, into one that ends with the graph or the node, or into
/// one with which that ends. The driver leaves it undefined to destroy what a stream captures into.
bool isCapturedInto(const Thread& thread, std::uint64_t handle) {
  const auto& handles = thread.session.handles;
  return std::ranges::any_of(thread.session.captures.graphs(), [&](std::uint64_t graph) {
    return handles.isPartOf(graph, handle) || handles.isPartOf(handle, graph);
  });
}

/// The graph that a node belongs to, as the program knows it; 0 if the node has ended.
std::uint64_t graphOf(const Thread& thread, std::uint64_t node) {
  return thread.session.handles.parentOf(node);
}

void putNodes(Thread& thread, wire::Encoder& out, std::span<const CUgraphNode> nodes,
              std::uint64_t graph) {
  out.put<std::uint64_t>(nodes.size() * sizeof(std::uint64_t));
  for (CUgraphNode node : nodes) putNode(thread, out, node, graph);
}

/// A node keeps an event that the program has destroyed. Such an event gets no new handle.
CUresult knownEvent(const Thread& thread, CUresult status, CUevent event) {
  const bool isKnown = thread.session.handles.handleOf(wire::HandleKind::event, event) != 0;
  return status != CUDA_SUCCESS || isKnown ? status : CUDA_ERROR_INVALID_HANDLE;
}

template <class T>
std::span<const T> portion(const std::vector<T>& of, std::size_t first) {
  return first >= of.size()
             ? std::span<const T>()
             : std::span(of).subspan(first, std::min(wire::kElementsAtOnce, of.size() - first));
}

}  // namespace

CUresult cuGraphAddNode_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  Dependencies dependencies;
  NodeParams params;
  const bool fits = dependencies.decode(in);
  params.decode(in);
  if (!fits || !in.finished()) return thread.refuseFrame();
  CUgraph graph = nullptr;
  if (const CUresult status = thread.find<CUgraph>(handle, &graph); status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = dependencies.resolve(thread); status != CUDA_SUCCESS) return status;
  if (const CUresult status = params.resolve(thread); status != CUDA_SUCCESS) return status;
  if (thread.driver.cuGraphAddNode_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUgraphNode node = nullptr;
  CUgraphNodeParams& given = *params.get();
  if (const CUresult status = thread.driver.cuGraphAddNode_v2(
          &node, graph, dependencies.nodes.data(), dependencies.edgeData(),
          dependencies.nodes.size(), &given);
      status != CUDA_SUCCESS)
    return status;
  const std::uint64_t number = thread.add(wire::HandleKind::graphNode, node, handle);
  out.put(number);
  out.put(given.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? given.alloc.dptr : CUdeviceptr{0});
  const unsigned bodies =
      given.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && given.conditional.phGraph_out != nullptr
          ? given.conditional.size
          : 0;
  out.put<std::uint64_t>(bodies * sizeof(std::uint64_t));
  for (unsigned i = 0; i < bodies; ++i)
    out.put(thread.add(wire::HandleKind::graph, given.conditional.phGraph_out[i], number));
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetParams(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  NodeParams params;
  params.decode(in);
  if (!in.finished()) return thread.refuseFrame();
  CUgraphNode node = nullptr;
  if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
    return status;
  // The driver would replace the child graph, whose handles would stay.
  if (params.get()->type == CU_GRAPH_NODE_TYPE_GRAPH ||
      params.get()->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
      thread.driver.cuGraphNodeSetParams == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult status = params.resolve(thread); status != CUDA_SUCCESS) return status;
  return thread.driver.cuGraphNodeSetParams(node, params.get());
}

CUresult cuGraphExecNodeSetParams(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto execHandle = in.get<std::uint64_t>();
  const auto handle = in.get<std::uint64_t>();
  NodeParams params;
  params.decode(in);
  if (!in.finished()) return thread.refuseFrame();
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  if (const CUresult status = thread.find<CUgraphExec>(execHandle, &exec); status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
    return status;
  if (params.get()->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
      thread.driver.cuGraphExecNodeSetParams == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult status = params.resolve(thread); status != CUDA_SUCCESS) return status;
  return thread.driver.cuGraphExecNodeSetParams(exec, node, params.get());
}

CUresult graphNodeParams(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto type = in.get<CUgraphNodeType>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraphNode node = nullptr;
  if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
    return status;
  CUgraphNodeType actual{};
  if (const CUresult status = thread.driver.cuGraphNodeGetType(node, &actual);
      status != CUDA_SUCCESS)
    return status;
  if (actual != type) return CUDA_ERROR_INVALID_VALUE;
  out.put(thread.session.handles.rootOf(handle));
  return encodeNodeParams(thread, node, type, out);
}

CUresult cuGraphEventRecordNodeGetEvent(Thread& thread, CUgraphNode hNode, CUevent* event_out) {
  const CUresult status = thread.driver.cuGraphEventRecordNodeGetEvent(hNode, event_out);
  return knownEvent(thread, status, *event_out);
}

CUresult cuGraphEventWaitNodeGetEvent(Thread& thread, CUgraphNode hNode, CUevent* event_out) {
  const CUresult status = thread.driver.cuGraphEventWaitNodeGetEvent(hNode, event_out);
  return knownEvent(thread, status, *event_out);
}

/// A portion of a list: a reply has room for some thousand elements.
CUresult graphElements(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto which = in.get<wire::GraphElements>();
  const auto handle = in.get<std::uint64_t>();
  const auto first = in.get<std::uint64_t>();
  if (!in.finished() || which > wire::GraphElements::dependents) return thread.refuseFrame();
  const bool ofNode =
      which == wire::GraphElements::dependencies || which == wire::GraphElements::dependents;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  if (const CUresult status =
          ofNode ? thread.find<CUgraphNode>(handle, &node) : thread.find<CUgraph>(handle, &graph);
      status != CUDA_SUCCESS)
    return status;
  Elements elements;
  if (const CUresult status = readElements(thread, which, graph, node, elements);
      status != CUDA_SUCCESS)
    return status;
  const std::uint64_t owner = ofNode ? graphOf(thread, handle) : handle;
  const auto edges = portion(elements.edges, first);
  out.put<std::uint64_t>(elements.nodes.size());
  putNodes(thread, out, portion(elements.nodes, first), owner);
  putNodes(thread, out, portion(elements.others, first), owner);
  out.putBytes(edges.data(), edges.size_bytes());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(Thread& thread, CUgraph hGraph) {
  const std::uint64_t handle = thread.session.handles.handleOf(wire::HandleKind::graph, hGraph);
  if (isCapturedInto(thread, handle) || thread.session.handles.parentOf(handle) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return thread.driver.cuGraphDestroy(hGraph);
}

CUresult cuGraphNodeFindInClone(Thread& thread, CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph) {
  if (const CUresult status =
          thread.driver.cuGraphNodeFindInClone(phNode, hOriginalNode, hClonedGraph);
      status != CUDA_SUCCESS)
    return status;
  const auto clone = thread.session.handles.handleOf(wire::HandleKind::graph, hClonedGraph);
  return handleOf(thread, *phNode, clone) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(Thread& thread, CUgraphNode hNode) {
  const auto handle = thread.session.handles.handleOf(wire::HandleKind::graphNode, hNode);
  if (isCapturedInto(thread, handle)) return CUDA_ERROR_INVALID_VALUE;
  return thread.driver.cuGraphDestroyNode(hNode);
}

/// The driver says why it refuses a graph, and names a node.
CUresult cuGraphInstantiateWithParams(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                                      Window window) {
  const auto handle = in.get<std::uint64_t>();
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = in.get<cuuint64_t>();
  const auto stream = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraph graph = nullptr;
  if (const CUresult status = thread.find<CUgraph>(handle, &graph); status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUstream>(stream, &params.hUploadStream);
      status != CUDA_SUCCESS)
    return status;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if ((params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
    thread.awaitWindow(window, params.hUploadStream, 0,
                       {static_cast<std::uint64_t>(CallNumber::cuGraphInstantiateWithParams)});
  CUgraphExec exec = nullptr;
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  const CUresult status = thread.session.graphMemory.instantiate(graph, &exec, [&] {
    return thread.driver.cuGraphInstantiateWithParams(&exec, graph, &params);
  });
  out.put<std::uint64_t>(status == CUDA_SUCCESS ? thread.add(wire::HandleKind::graphExec, exec)
                                                : 0);
  out.put(params.result_out);
  out.put(handleOf(thread, params.hErrNode_out, handle));
  return status;
}

CUresult cuGraphExecDestroy(Thread& thread, CUgraphExec hGraphExec) {
  const CUresult status = thread.driver.cuGraphExecDestroy(hGraphExec);
  if (status == CUDA_SUCCESS) thread.session.graphMemory.destroyed(hGraphExec);
  return status;
}

/// Charges at once the GPU memory that the launch took for the graph's memory nodes.
CUresult cuGraphLaunch(Thread& thread, CUgraphExec hGraph, CUstream hStream) {
  const CUresult status = thread.driver.cuGraphLaunch(hGraph, hStream);
  thread.noteLaunch(hStream);
  if (status == CUDA_SUCCESS) count(thread.session.figures.launches);
  if (thread.session.graphMemory.takesMemory(hGraph)) thread.session.graphMemory.settle();
  return status;
}

/// `forKernels`: the handle by which kernels launch it; 0 if they may not.
CUresult graphExecFacts(Thread& thread, CUgraphExec hGraphExec, unsigned int* takesMemory,
                        cuuint64_t* forKernels) {
  *takesMemory = thread.session.graphMemory.takesMemory(hGraphExec) ? 1 : 0;
  cuuint64_t flags = 0;
  const CUresult status = thread.driver.cuGraphExecGetFlags(hGraphExec, &flags);
  const bool shown = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
  *forKernels = shown ? reinterpret_cast<cuuint64_t>(hGraphExec) : 0;
  return status;
}

CUresult cuGraphExecUpdate_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto execHandle = in.get<std::uint64_t>();
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraphExec exec = nullptr;
  CUgraph graph = nullptr;
  if (const CUresult status = thread.find<CUgraphExec>(execHandle, &exec); status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUgraph>(handle, &graph); status != CUDA_SUCCESS)
    return status;
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = thread.driver.cuGraphExecUpdate_v2(exec, graph, &info);
  out.put(info.result);
  out.put(handleOf(thread, info.errorNode, handle));
  out.put(handleOf(thread, info.errorFromNode, handle));
  return status;
}

CUresult cuGraphKernelNodeGetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUkernelNodeAttrID>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraphNode node = nullptr;
  if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
    return status;
  CUkernelNodeAttrValue value{};
  const CUresult status = thread.driver.cuGraphKernelNodeGetAttribute(node, attribute, &value);
  out.put(value);
  return status;
}

/// No attribute that a node may have carries a handle, except that of a node which kernels update.
CUresult cuGraphKernelNodeSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUkernelNodeAttrID>();
  const auto value = in.get<CUkernelNodeAttrValue>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraphNode node = nullptr;
  if (const CUresult status = thread.find<CUgraphNode>(handle, &node); status != CUDA_SUCCESS)
    return status;
  if (attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ||
      attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
      attribute == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
    return CUDA_ERROR_NOT_SUPPORTED;
  return thread.driver.cuGraphKernelNodeSetAttribute(node, attribute, &value);
}

/// The driver writes to a file in memory, and the client gets the text in portions.
CUresult cuGraphDebugDotPrint(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto flags = in.get<unsigned>();
  const auto offset = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUgraph graph = nullptr;
  if (const CUresult status = thread.find<CUgraph>(handle, &graph); status != CUDA_SUCCESS)
    return status;
  const int file = wire::createAnonymousFile("graph", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const CUresult status = thread.driver.cuGraphDebugDotPrint(graph, path.c_str(), flags);
  std::vector<std::byte> text(wire::kTextAtOnce);
  const ssize_t bytes = pread(file, text.data(), text.size(), static_cast<off_t>(offset));
  close(file);
  out.putBytes(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return status;
}

CUresult cuDeviceGraphMemTrim(Thread& thread, CUdevice device) {
  const CUresult status = thread.driver.cuDeviceGraphMemTrim(device);
  thread.session.graphMemory.settle();
  return status;
}

CUresult cuDeviceGetGraphMemAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto device = in.get<CUdevice>();
  const auto attribute = in.get<CUgraphMem_attribute>();
  if (!in.finished()) return thread.refuseFrame();
  cuuint64_t value = 0;
  const CUresult status = thread.driver.cuDeviceGetGraphMemAttribute(device, attribute, &value);
  out.put(value);
  return status;
}

CUresult cuDeviceSetGraphMemAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto device = in.get<CUdevice>();
  const auto attribute = in.get<CUgraphMem_attribute>();
  auto value = in.get<cuuint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  return thread.driver.cuDeviceSetGraphMemAttribute(device, attribute, &value);
}

}  // namespace worker
