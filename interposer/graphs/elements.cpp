#include "interposer/graphs/elements.h"

#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

/// Appends the portion that begins at `first`; nothing at the end of the list.
CUresult fetch(wire::GraphElements which, std::uint64_t of, std::uint64_t first,
               std::uint64_t& total, Elements& elements) {
  Call call;
  if (!call.begin(CallNumber::graphElements, 24, kOrdered)) return call.status();
  call.encoder().put(which);
  call.encoder().put(of);
  call.encoder().put(first);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  total = reply.get<std::uint64_t>();
  for (auto* list : {&elements.nodes, &elements.others}) {
    for (const auto node : reply.getArray<std::uint64_t>(wire::kReplyBytes))
      list->push_back(handle<CUgraphNode>(node));
  }
  const auto edges = reply.getArray<CUgraphEdgeData>(wire::kReplyBytes);
  elements.edges.insert(elements.edges.end(), edges.begin(), edges.end());
  return reply.ok() ? CUDA_SUCCESS : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/// Sets the places beyond the list to null, as the driver does.
template <class T>
void copy(const std::vector<T>& from, T* to, std::size_t room) {
  for (std::size_t i = 0; to != nullptr && i < room; ++i) to[i] = i < from.size() ? from[i] : T{};
}

/// The program's arrays for a list.
struct Wanted {
  CUgraphNode* nodes;
  CUgraphNode* others = nullptr;
  CUgraphEdgeData* edges = nullptr;
};

CUresult give(wire::GraphElements which, std::uint64_t of, const Wanted& wanted,
              std::size_t* count) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Elements elements;
  if (wanted.nodes == nullptr && wanted.others == nullptr) {
    std::uint64_t total = 0;
    const CUresult status = fetch(which, of, ~std::uint64_t{0}, total, elements);
    if (status == CUDA_SUCCESS) *count = total;
    return status;
  }
  if (const CUresult status = fetchElements(which, of, elements); status != CUDA_SUCCESS)
    return status;
  if (wanted.edges == nullptr && haveData(elements.edges)) return CUDA_ERROR_LOSSY_QUERY;
  copy(elements.nodes, wanted.nodes, *count);
  copy(elements.others, wanted.others, *count);
  copy(elements.edges, wanted.edges, *count);
  *count = std::min(*count, elements.nodes.size());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult fetchElements(wire::GraphElements which, std::uint64_t of, Elements& elements) {
  std::uint64_t total = 1;
  while (elements.nodes.size() < total) {
    const std::size_t before = elements.nodes.size();
    if (const CUresult status = fetch(which, of, before, total, elements); status != CUDA_SUCCESS)
      return status;
    if (elements.nodes.size() == before) break;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return give(wire::GraphElements::nodes, number(hGraph), {nodes}, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return give(wire::GraphElements::roots, number(hGraph), {rootNodes}, numRootNodes);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges) {
  return give(wire::GraphElements::edges, number(hGraph), {from, to, edgeData}, numEdges);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return interposer::cuGraphGetEdges_v2(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edgeData, size_t* numDependencies) {
  return give(wire::GraphElements::dependencies, number(hNode), {dependencies, nullptr, edgeData},
              numDependencies);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies,
                                    size_t* numDependencies) {
  return interposer::cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                         CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
  return give(wire::GraphElements::dependents, number(hNode), {dependentNodes, nullptr, edgeData},
              numDependentNodes);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                      size_t* numDependentNodes) {
  return interposer::cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr,
                                                     numDependentNodes);
}

}  // namespace interposer
