#include "interposer/graphs/node_params.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/code/parameters.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

struct NodeMemory {
  std::uint64_t root;  ///< the graph that owns the node, directly or through child graphs
  std::vector<std::byte> content;
  std::vector<void*> pointers;  ///< into it
  std::vector<CUgraph> bodies;
};

struct NodeMemories {
  std::mutex mutex;
  std::map<CUgraphNode, NodeMemory> ofNode;
};

NodeMemories& memories() {
  static NodeMemories* const instance = new NodeMemories;
  return *instance;
}

/// Parameters as an array of pointers, from either form in which the program passes them.
CUresult pointAtParameters(CUDA_KERNEL_NODE_PARAMS_v3& kernel, NodeMemory& memory) {
  const auto handle = kernel.func != nullptr ? number(kernel.func) : number(kernel.kern);
  Kernel* const found = findKernel(handle);
  std::shared_ptr<Kernel> described;
  if (found == nullptr) {
    Call call;
    if (!call.begin(CallNumber::describeKernel, 8, kOrdered)) return call.status();
    call.encoder().put(handle);
    wire::Decoder reply;
    if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
    described = readKernel(reply, {});
    if (described == nullptr) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  }
  Kernel& known = found != nullptr ? *found : *described;
  const std::vector<KernelParameter>* layout = nullptr;
  if (const CUresult status = known.parameters(layout); status != CUDA_SUCCESS) return status;
  memory.content.resize(std::max<std::size_t>(memory.content.size(), known.parameterBytes()));
  for (const auto& [offset, size] : *layout)
    memory.pointers.push_back(memory.content.data() + offset);
  kernel.kernelParams = memory.pointers.data();
  kernel.extra = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult fetchNodeParams(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams& params) {
  Call call;
  if (!call.begin(CallNumber::graphNodeParams, 16, kOrdered)) return call.status();
  call.encoder().put(number(node));
  call.encoder().put(type);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  NodeMemory memory{reply.get<std::uint64_t>(), {}, {}, {}};
  params = reply.get<CUgraphNodeParams>();
  const auto content = reply.getBytes(wire::kReplyBytes);
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  memory.content.assign(content.begin(), content.end());
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    if (const CUresult status = pointAtParameters(params.kernel, memory); status != CUDA_SUCCESS)
      return status;
  }
  auto* bytes = memory.content.empty() ? nullptr : memory.content.data();
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    params.alloc.accessDescs = reinterpret_cast<const CUmemAccessDesc*>(bytes);
  if (type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
    params.memOp.paramArray = reinterpret_cast<CUstreamBatchMemOpParams*>(bytes);
  const std::lock_guard lock(memories().mutex);
  memories().ofNode.insert_or_assign(node, std::move(memory));
  return CUDA_SUCCESS;
}

CUgraph* keepBodies(CUgraphNode node, CUgraph root, std::size_t count,
                    const std::uint64_t* graphs) {
  NodeMemory memory{number(root), {}, {}, {}};
  for (std::size_t i = 0; i < count; ++i) memory.bodies.push_back(handle<CUgraph>(graphs[i]));
  const std::lock_guard lock(memories().mutex);
  return memories().ofNode.insert_or_assign(node, std::move(memory)).first->second.bodies.data();
}

void forgetNode(CUgraphNode node) {
  const std::lock_guard lock(memories().mutex);
  memories().ofNode.erase(node);
}

void forgetGraph(CUgraph graph) {
  const std::lock_guard lock(memories().mutex);
  std::erase_if(memories().ofNode,
                [&](const auto& entry) { return entry.second.root == number(graph); });
}

}  // namespace interposer
