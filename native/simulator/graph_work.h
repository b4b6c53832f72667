// The work of a graph's node: one struct for each supported type.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/launch.h"
#include "native/simulator/memory_operations.h"

namespace simulator {

struct Condition;
struct Context;
struct Event;
struct Graph;
struct GraphMemory;

struct KernelWork {
  CUfunction func = nullptr;  ///< the handle that the program gave: this one or `kern`
  CUkernel kern = nullptr;
  std::shared_ptr<Function> function;
  LaunchRequest request;
  std::vector<std::byte> parameters;
  bool packed = false;  ///< the program gave `parameters` as one buffer
  std::map<int, CUlaunchAttributeValue> attributes;
  /// Arrays that the program reads after cuGraphKernelNodeGetParams: `kernelParams` or `extra`.
  std::vector<void*> view;
  std::size_t packedBytes = 0;

  /// The launch that the attributes ask for, too.
  LaunchRequest effective() const;
};

struct CopyWork {
  CUDA_MEMCPY3D parameters{};
  Context* context = nullptr;
};

struct MemsetWork {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  Context* context = nullptr;
};

struct HostWork {
  CUDA_HOST_NODE_PARAMS parameters{};
};

struct ChildWork {
  std::shared_ptr<Graph> graph;
};

struct EmptyWork {};

struct WaitWork {
  std::shared_ptr<Event> event;
};

struct RecordWork {
  std::shared_ptr<Event> event;
};

struct AllocateWork {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphMemory> memory;
};

struct FreeWork {
  std::shared_ptr<GraphMemory> memory;
};

/// A batch of memory operations.
struct OperationsWork {
  MemoryOperations operations;
  Context* context = nullptr;
  unsigned flags = 0;
};

/// Chooses a body by a condition, or repeats it.
struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type{};
  std::vector<std::shared_ptr<Graph>> bodies;
  std::vector<CUgraph> handles;  ///< of the bodies: the array that the program reads
};

using Work =
    std::variant<KernelWork, CopyWork, MemsetWork, HostWork, ChildWork, EmptyWork, WaitWork,
                 RecordWork, AllocateWork, FreeWork, OperationsWork, ConditionalWork>;

CUgraphNodeType typeOf(const Work& work);

/// The graphs that a node owns: a child graph, or bodies.
std::span<const std::shared_ptr<Graph>> graphsIn(const Work& work);

/// The context that parameters name; the current one for null.
CUresult contextOf(CUcontext handle, Context*& context);
/// Checks the parameters of a node and makes its work, but for nodes that own graphs.
CUresult makeWork(const CUgraphNodeParams& parameters, Work& work);
/// Gives a node new parameters. It keeps its launch attributes and its context.
/// CUDA_ERROR_INVALID_VALUE if the types differ.
CUresult replaceWork(Work& work, Work made);
/// Work that a node runs on the GPU or on the host; empty for a node that only orders others.
std::function<void()> runnable(const Work& work);
/// The last check before a graph becomes executable.
CUresult checkWork(const Work& work);

}  // namespace simulator
