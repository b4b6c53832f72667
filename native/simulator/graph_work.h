// The work of a graph's node: one struct for each supported type.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/launch.h"
#include "native/simulator/memory_operations.h"

namespace simulator {

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

using Work = std::variant<KernelWork, CopyWork, MemsetWork, HostWork, ChildWork, EmptyWork,
                          WaitWork, RecordWork, AllocateWork, FreeWork, OperationsWork>;

CUgraphNodeType typeOf(const Work& work);

/// Checks the parameters of a node and makes its work.
CUresult makeWork(const CUgraphNodeParams& parameters, Work& work);
/// Gives a node new parameters. It keeps its launch attributes and its context.
/// CUDA_ERROR_INVALID_VALUE if the types differ.
CUresult replaceWork(Work& work, Work made);
/// Work that a node runs on the GPU or on the host; empty for a node that only orders others.
std::function<void()> runnable(const Work& work);
/// The last check before a graph becomes executable.
CUresult checkWork(const Work& work);

}  // namespace simulator
