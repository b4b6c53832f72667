// cuGraphDebugDotPrint: a graph in the language of Graphviz.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "native/simulator/event.h"
#include "native/simulator/graph.h"
#include "native/simulator/graph_memory.h"

using namespace simulator;

namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string hex(const void* pointer) { return hex(reinterpret_cast<std::uint64_t>(pointer)); }

std::string dimensions(const std::array<unsigned, 3>& size) {
  return std::to_string(size[0]) + "," + std::to_string(size[1]) + "," + std::to_string(size[2]);
}

/// Describes a node in lines. `verbose` adds its parameters.
struct Label {
  unsigned flags;

  bool shows(unsigned flag) const {
    return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
  }
  std::string operator()(const KernelWork& kernel) const {
    std::string text = "KERNEL\\n" + kernel.function->info.name;
    if (shows(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) {
      text += "\\ngrid " + dimensions(kernel.request.grid) + "\\nblock " +
              dimensions(kernel.request.block) + "\\nshared " +
              std::to_string(kernel.request.dynamicShared);
    }
    if (shows(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES)) {
      for (const auto& [id, value] : kernel.attributes)
        text += "\\nattribute " + std::to_string(id);
    }
    return text;
  }
  std::string operator()(const CopyWork& copying) const {
    const auto name = [](CUmemorytype type) {
      return type == CU_MEMORYTYPE_HOST     ? "H"
             : type == CU_MEMORYTYPE_DEVICE ? "D"
             : type == CU_MEMORYTYPE_ARRAY  ? "A"
                                            : "U";
    };
    const CUDA_MEMCPY3D& copy = copying.parameters;
    std::string text =
        std::string("MEMCPY\\n") + name(copy.srcMemoryType) + "to" + name(copy.dstMemoryType);
    if (shows(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) {
      text += "\\nwidth " + std::to_string(copy.WidthInBytes) + "\\nheight " +
              std::to_string(copy.Height) + "\\ndepth " + std::to_string(copy.Depth);
    }
    return text;
  }
  std::string operator()(const MemsetWork& filling) const {
    const CUDA_MEMSET_NODE_PARAMS& memset = filling.parameters;
    if (!shows(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return "MEMSET";
    return "MEMSET\\ndst " + hex(memset.dst) + "\\nvalue " + std::to_string(memset.value) +
           "\\nelement " + std::to_string(memset.elementSize) + "\\nwidth " +
           std::to_string(memset.width) + "\\nheight " + std::to_string(memset.height);
  }
  std::string operator()(const HostWork& host) const {
    if (!shows(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) return "HOST";
    return "HOST\\nfn " + hex(reinterpret_cast<const void*>(host.parameters.fn)) + "\\nuserData " +
           hex(host.parameters.userData);
  }
  std::string operator()(const ChildWork&) const { return "GRAPH"; }
  std::string operator()(const EmptyWork&) const { return "EMPTY"; }
  std::string operator()(const WaitWork& wait) const {
    return "WAIT_EVENT" + event(wait.event.get());
  }
  std::string operator()(const RecordWork& record) const {
    return "EVENT_RECORD" + event(record.event.get());
  }
  std::string operator()(const AllocateWork& allocating) const {
    return "MEM_ALLOC" + memory(*allocating.memory, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS);
  }
  std::string operator()(const FreeWork& freeing) const {
    return "MEM_FREE" + memory(*freeing.memory, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS);
  }
  std::string operator()(const OperationsWork& batch) const {
    return "BATCH_MEM_OP\\ncount " + std::to_string(batch.operations.size());
  }
  std::string operator()(const ConditionalWork& conditional) const {
    constexpr const char* kTypes[] = {"IF", "WHILE", "SWITCH"};
    if (!shows(CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)) return "CONDITIONAL";
    return std::string("CONDITIONAL\\ntype ") + kTypes[conditional.type] + "\\nhandle " +
           hex(conditional.condition->handle) + "\\nbodies " +
           std::to_string(conditional.bodies.size());
  }

 private:
  std::string event(const Event* event) const {
    return shows(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS) ? "\\nevent " + hex(event) : "";
  }
  std::string memory(const GraphMemory& memory, unsigned flag) const {
    if (!shows(flag)) return "";
    return "\\ndptr " + hex(memory.address) + "\\nbytes " + std::to_string(memory.bytes);
  }
};

std::string nameOf(const Graph& graph, const GraphNode& node) {
  return "\"graph_" + std::to_string(graph.id) + "_node_" + std::to_string(node.id) + "\"";
}

void print(std::ostream& out, const Graph& graph, unsigned flags) {
  const std::string name = "graph_" + std::to_string(graph.id);
  out << "subgraph cluster_" << graph.id << " {\nlabel=\"" << name << "\"\n";
  for (const auto& node : graph.nodes) {
    out << nameOf(graph, *node) << "[shape=\"rectangle\" label=\"" << node->id << "\\n"
        << std::visit(Label{flags}, node->work);
    if ((flags & (CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0)
      out << "\\nhandle " << hex(node.get());
    out << "\"];\n";
    for (const auto& inner : graphsIn(node->work)) print(out, *inner, flags);
  }
  for (const auto& node : graph.nodes) {
    for (const Edge& edge : node->dependencies)
      out << nameOf(graph, *edge.node) << " -> " << nameOf(graph, *node) << ";\n";
  }
  out << "}\n";
}

}  // namespace

DRIVER_CALL cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  return onGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ofstream file(path);
    file << "digraph dot {\n";
    print(file, graph, flags);
    file << "}\n";
    file.close();
    return file ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}
