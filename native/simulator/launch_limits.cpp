#include "native/simulator/launch_limits.h"

#include "native/simulator/attributes.h"
#include "native/simulator/occupancy.h"

namespace simulator {
namespace {

bool dimensions(const LaunchRequest& request) {
  for (int i = 0; i < 3; ++i) {
    if (request.grid[i] == 0 || request.grid[i] > kGridDim[i]) return false;
    if (request.block[i] == 0 || request.block[i] > kBlockDim[i]) return false;
  }
  return true;
}

CUresult checkCluster(const Function& function, const LaunchRequest& request) {
  const auto& required = function.info.requiredClusterDim;
  const bool fixed = required[0] != 0;
  if (fixed && request.clusterGiven && request.cluster != required) return CUDA_ERROR_INVALID_VALUE;
  const auto& cluster = fixed ? required : request.cluster;
  std::uint64_t blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || request.grid[i] % cluster[i] != 0)
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    blocks *= cluster[i];
  }
  const bool nonPortable =
      effective(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
  return blocks > (nonPortable ? 2 * kBlocksPerCluster : kBlocksPerCluster)
             ? CUDA_ERROR_INVALID_CLUSTER_SIZE
             : CUDA_SUCCESS;
}

}  // namespace

CUresult check(const Function& function, const LaunchRequest& request) {
  if (!dimensions(request)) return CUDA_ERROR_INVALID_VALUE;
  const unsigned threads = request.block[0] * request.block[1] * request.block[2];
  if (threads > kThreadsPerBlock || threads > function.info.maxThreadsPerBlock)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > threadLimit(function.info)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const int shared = effective(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  if (request.dynamicShared > static_cast<unsigned>(shared)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult cluster = checkCluster(function, request);
  if (cluster != CUDA_SUCCESS || !request.cooperative) return cluster;
  const std::uint64_t blocks = std::uint64_t{request.grid[0]} * request.grid[1] * request.grid[2];
  const std::uint64_t together = std::uint64_t{kMultiprocessors} *
                                 blocksPerMultiprocessor(function, threads, request.dynamicShared);
  return blocks > together ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

}  // namespace simulator
