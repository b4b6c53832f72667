// What the tests of graphs share.
#pragma once

#include <cstdint>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

/// *at = value.
inline CUfunction storeKernel() {
  static const CUfunction store = functionOf(kKernels, "store");
  return store;
}

inline CUgraph create() {
  CUgraph graph = nullptr;
  OK(DRIVER(cuGraphCreate)(&graph, 0));
  return graph;
}

inline CUdeviceptr allocate(std::size_t bytes = 256) {
  CUdeviceptr p = 0;
  OK(DRIVER(cuMemAlloc_v2)(&p, bytes));
  OK(DRIVER(cuMemsetD8_v2)(p, 0, bytes));
  OK(DRIVER(cuStreamSynchronize)(nullptr));  // other streams do not wait for the memset
  return p;
}

inline std::uint32_t valueAt(CUdeviceptr p) {
  std::uint32_t value = 0;
  OK(DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuMemcpyDtoH_v2)(&value, p, sizeof value));
  return value;
}

inline CUDA_KERNEL_NODE_PARAMS ofOneThread(CUfunction function, void** arguments) {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = function;
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = arguments;
  return parameters;
}

/// Adds a kernel of one thread.
inline CUgraphNode addKernel(CUgraph graph, CUfunction function, void** arguments,
                             const std::vector<CUgraphNode>& after = {}) {
  CUgraphNode node = nullptr;
  const CUDA_KERNEL_NODE_PARAMS parameters = ofOneThread(function, arguments);
  OK(DRIVER(cuGraphAddKernelNode_v2)(&node, graph, after.data(), after.size(), &parameters));
  return node;
}

/// The parameters of a kernel node: *at = value.
struct Store {
  CUfunction function;
  CUdeviceptr at;
  std::uint32_t value;
  void* arguments[2] = {&at, &value};

  CUDA_KERNEL_NODE_PARAMS parameters() { return ofOneThread(function, arguments); }
};

inline CUgraphNode addStore(CUgraph graph, CUdeviceptr at, std::uint32_t value,
                            const std::vector<CUgraphNode>& after = {}) {
  void* arguments[] = {&at, &value};
  return addKernel(graph, storeKernel(), arguments, after);
}

inline CUgraphNode addHost(CUgraph graph, CUhostFn fn, void* data,
                           const std::vector<CUgraphNode>& after = {}) {
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS parameters{fn, data};
  OK(DRIVER(cuGraphAddHostNode)(&node, graph, after.data(), after.size(), &parameters));
  return node;
}

inline CUgraphNode addEmpty(CUgraph graph, const std::vector<CUgraphNode>& after = {}) {
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddEmptyNode)(&node, graph, after.data(), after.size()));
  return node;
}

inline CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  OK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, flags));
  return exec;
}

inline void launch(CUgraphExec exec, CUstream stream = nullptr) {
  OK(DRIVER(cuGraphLaunch)(exec, stream));
}

inline void destroy(CUgraph graph, CUgraphExec exec = nullptr) {
  if (exec != nullptr) OK(DRIVER(cuGraphExecDestroy)(exec));
  OK(DRIVER(cuGraphDestroy)(graph));
}
