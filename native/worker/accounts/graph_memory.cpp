#include "native/worker/accounts/graph_memory.h"

#include <algorithm>
#include <vector>

namespace worker {

namespace {

/// Physical memory comes in pages of 2 MiB, and pools grow by 32 MiB (H200, driver 580).
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
constexpr std::uint64_t kStep = std::uint64_t{32} << 20;
/// A graph cannot contain itself; the limit only bounds the recursion.
constexpr unsigned kDeepest = 64;

std::uint64_t roundUp(std::uint64_t value, std::uint64_t unit) {
  return value > ~std::uint64_t{0} - unit ? value : (value + unit - 1) / unit * unit;
}

std::uint64_t sum(std::uint64_t one, std::uint64_t other) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(one, other, &result) ? ~std::uint64_t{0} : result;
}

/// Bytes of the pages that the ranges touch.
std::uint64_t pagesOf(const std::map<CUdeviceptr, std::uint64_t>& ranges) {
  std::uint64_t bytes = 0, counted = 0;
  for (const auto& [address, size] : ranges) {
    const std::uint64_t begin = std::max<std::uint64_t>(address / kPage * kPage, counted);
    const std::uint64_t end = roundUp(sum(address, size), kPage);
    if (end <= begin) continue;
    bytes = sum(bytes, end - begin);
    counted = end;
  }
  return bytes;
}

}  // namespace

void GraphMemory::collect(CUgraph graph, Ranges& ranges, unsigned depth) const {
  size_t count = 0;
  if (depth > kDeepest || driver_.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return;
  std::vector<CUgraphNode> nodes(count);
  if (count == 0 || driver_.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return;
  nodes.resize(std::min(count, nodes.size()));
  for (CUgraphNode node : nodes) collectNode(node, ranges, depth);
}

void GraphMemory::collectNode(CUgraphNode node, Ranges& ranges, unsigned depth) const {
  CUgraphNodeType type{};
  if (driver_.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  CUgraph child = nullptr;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
      driver_.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
    collect(child, ranges, depth + 1);
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      driver_.cuGraphMemAllocNodeGetParams(node, &parameters) != CUDA_SUCCESS)
    return;
  std::uint64_t& bytes = ranges[parameters.poolProps.location.id][parameters.dptr];
  bytes = std::max<std::uint64_t>(bytes, parameters.bytesize);
}

GraphMemory::Needs GraphMemory::needsOf(CUgraph graph) const {
  Ranges ranges;
  collect(graph, ranges, 0);
  Needs needs;
  for (const auto& [device, found] : ranges) {
    needs.bytes[device] = pagesOf(found);
    for (const auto& [address, bytes] : found) needs.addresses.insert(address);
  }
  return needs;
}

CUresult GraphMemory::instantiate(CUgraph graph, CUgraphExec* exec,
                                  const std::function<CUresult()>& make) {
  Needs needs = needsOf(graph);
  if (needs.bytes.empty()) return make();
  std::uint64_t most = 0;
  for (const auto& [device, bytes] : needs.bytes) most = sum(most, roundUp(bytes, kStep));
  if (!quota_.charge(most)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = make();
  if (status != CUDA_SUCCESS) return quota_.refund(most), status;
  const std::lock_guard lock(mutex_);
  for (const auto& [device, bytes] : needs.bytes) charged_[device] += roundUp(bytes, kStep);
  addresses_.insert(needs.addresses.begin(), needs.addresses.end());
  execs_[*exec] = std::move(needs);
  settleAll();
  return status;
}

bool GraphMemory::takesMemory(CUgraphExec exec) const {
  const std::lock_guard lock(mutex_);
  return execs_.contains(exec);
}

bool GraphMemory::gives(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  return addresses_.contains(address);
}

void GraphMemory::destroyed(CUgraphExec exec) {
  const std::lock_guard lock(mutex_);
  if (execs_.erase(exec) > 0) settleAll();
}

void GraphMemory::settle() {
  const std::lock_guard lock(mutex_);
  settleAll();
}

void GraphMemory::trim() {
  const std::lock_guard lock(mutex_);
  for (const auto& [device, bytes] : charged_) driver_.cuDeviceGraphMemTrim(device);
  settleAll();
}

/// Memory that the driver has reserved for graphs on the device, by its own figure.
std::uint64_t GraphMemory::held(CUdevice device) const {
  cuuint64_t bytes = 0;
  driver_.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
  return bytes;
}

void GraphMemory::settleAll() {
  for (auto& [device, charged] : charged_) {
    std::uint64_t needed = 0;
    for (const auto& [exec, needs] : execs_) {
      const auto found = needs.bytes.find(device);
      if (found != needs.bytes.end()) needed = sum(needed, found->second);
    }
    const std::uint64_t now = std::max(roundUp(needed, kStep), held(device));
    if (now > charged) quota_.chargeBeyond(now - charged);
    if (now < charged) quota_.refund(charged - now);
    charged = now;
  }
}

}  // namespace worker
