// Graphs as a whole, and what the vocabulary of cuda-api/ cannot say of their nodes.
#include <cstdio>
#include <cstring>
#include <string>

#include "interposer/graphs/node_params.h"
#include "interposer/graphs/pageable_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/graph.h"

namespace interposer {

CUresult cuGraphDestroy(CUgraph hGraph) {
  const CUresult status = remote::cuGraphDestroy(hGraph);
  if (status == CUDA_SUCCESS) forgetGraph(hGraph), releaseStaging();
  return status;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  const CUresult status = remote::cuGraphDestroyNode(hNode);
  if (status == CUDA_SUCCESS) forgetNode(hNode);
  return status;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  const CUresult status = remote::cuGraphNodeGetType(hNode, type);
  CUDA_MEMCPY3D copy{};
  if (status == CUDA_SUCCESS && *type == CU_GRAPH_NODE_TYPE_GRAPH && findPageableCopy(hNode, copy))
    *type = CU_GRAPH_NODE_TYPE_MEMCPY;
  return status;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  CUDA_MEMCPY3D copy{};
  if (findPageableCopy(hNode, copy)) return CUDA_ERROR_INVALID_VALUE;
  return remote::cuGraphChildGraphNodeGetGraph(hNode, phGraph);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value_out) {
  if (value_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuGraphKernelNodeGetAttribute, 16, kOrdered)) return call.status();
  call.encoder().put(number(hNode));
  call.encoder().put(attr);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *value_out = reply.get<CUkernelNodeAttrValue>();
  return status;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuGraphKernelNodeSetAttribute, 16 + sizeof *value, kOrdered))
    return call.status();
  call.encoder().put(number(hNode));
  call.encoder().put(attr);
  call.encoder().put(*value);
  wire::Decoder reply;
  return call.wait(reply);
}

namespace {

/// Appends the portion of the text that begins at its end; empty when there is no more.
CUresult fetchText(CUgraph graph, unsigned flags, std::string& text, bool& more) {
  Call call;
  if (!call.begin(CallNumber::cuGraphDebugDotPrint, 24, kOrdered)) return call.status();
  call.encoder().put(number(graph));
  call.encoder().put(flags);
  call.encoder().put<std::uint64_t>(text.size());
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto portion = reply.getBytes(wire::kTextAtOnce);
  text.append(reinterpret_cast<const char*>(portion.data()), portion.size());
  more = portion.size() == wire::kTextAtOnce;
  return reply.ok() ? CUDA_SUCCESS : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace

/// The program writes the file: the worker has no part in the program's file system.
CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  for (bool more = true; more;) {
    if (const CUresult status = fetchText(hGraph, flags, text, more); status != CUDA_SUCCESS)
      return status;
  }
  std::FILE* const file = std::fopen(path, "we");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuDeviceGetGraphMemAttribute, 16, kOrdered)) return call.status();
  call.encoder().put(device);
  call.encoder().put(attr);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto answer = reply.get<cuuint64_t>();
  std::memcpy(value, &answer, sizeof answer);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t content = 0;
  std::memcpy(&content, value, sizeof content);
  Call call;
  if (!call.begin(CallNumber::cuDeviceSetGraphMemAttribute, 24, kOrdered)) return call.status();
  call.encoder().put(device);
  call.encoder().put(attr);
  call.encoder().put(content);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace interposer
