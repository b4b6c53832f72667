#include "native/simulator/occupancy.h"

#include <algorithm>

#include "native/simulator/attributes.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/round_up.h"

namespace simulator {
namespace {

constexpr unsigned kRegisterUnit = 256;  ///< allocation unit of a warp's registers
/// partitions of a multiprocessor, each with a quarter of the registers
constexpr unsigned kPartitions = 4;
constexpr unsigned kFewestRegisters = 16, kMostRegisters = 255;  ///< per thread
constexpr unsigned kSharedUnit = 128;
constexpr unsigned kWarpsPerMultiprocessor = kThreadsPerMultiprocessor / kWarpSize;

unsigned warpsOf(unsigned threads) { return (threads + kWarpSize - 1) / kWarpSize; }

/// Maximum registers per thread so that the blocks promised by the kernel fit on a multiprocessor,
/// in the hardware's unit.
unsigned registersFor(unsigned threads, unsigned blocks) {
  const unsigned warpsPerPartition = (warpsOf(threads) * blocks + kPartitions - 1) / kPartitions;
  return kRegistersPerMultiprocessor / kPartitions / warpsPerPartition / kRegisterUnit *
         kRegisterUnit / kWarpSize;
}

/// The bound that NVIDIA's assembler observes: .maxnreg, .maxntid, .minnctapersm. Without them, the
/// maximum per thread.
unsigned registerBound(const KernelInfo& info) {
  unsigned bound = kMostRegisters;
  if (info.maxRegisters != 0) bound = std::min(bound, info.maxRegisters);
  if (info.threadsBounded) {
    const unsigned threads = std::clamp(info.maxThreadsPerBlock, 1u, kThreadsPerBlock);
    const unsigned blocks =
        std::clamp(info.minBlocksPerMultiprocessor, 1u, kWarpsPerMultiprocessor / warpsOf(threads));
    bound = std::min(bound, registersFor(threads, blocks));
  }
  return std::max(bound, kFewestRegisters);
}

unsigned warpsByRegisters(const KernelInfo& info) {
  return kRegistersPerMultiprocessor / kPartitions /
         roundUp(registersOf(info) * kWarpSize, kRegisterUnit) * kPartitions;
}

}  // namespace

unsigned registersOf(const KernelInfo& info) {
  return std::clamp(info.registers, kFewestRegisters, registerBound(info));
}

unsigned threadLimit(const KernelInfo& info) {
  return std::min({info.maxThreadsPerBlock, kThreadsPerBlock, warpsByRegisters(info) * kWarpSize});
}

unsigned blocksPerMultiprocessor(const Function& function, unsigned threads,
                                 std::size_t dynamicShared) {
  const KernelInfo& info = function.info;
  const unsigned warps = warpsOf(threads);
  if (dynamicShared > static_cast<std::size_t>(
                          effective(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)))
    return 0;
  const std::size_t shared = info.staticSharedBytes + dynamicShared;
  if (threads == 0 || threads > threadLimit(info) || shared > kSharedPerBlockOptin) return 0;
  const unsigned byShared =
      kSharedPerMultiprocessor /
      roundUp(static_cast<unsigned>(shared) + kReservedSharedPerBlock, kSharedUnit);
  return std::min({kBlocksPerMultiprocessor, kWarpsPerMultiprocessor / warps,
                   warpsByRegisters(info) / warps, byShared});
}

}  // namespace simulator

using namespace simulator;

namespace {

template <class Body>
CUresult onFunction(CUfunction handle, Body&& body) {
  return inContext([&](Context& context) -> CUresult {
    std::shared_ptr<Function> function;
    const CUresult status = findFunction(context, handle, function);
    return status == CUDA_SUCCESS ? body(*function) : status;
  });
}

/// Maximises blocks times block size over all multiples of a warp; prefers the larger block.
CUresult potentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                            CUoccupancyB2DSize sharedOf, std::size_t shared, int limit) {
  return onFunction(func, [&](Function& function) -> CUresult {
    if (minGridSize == nullptr || blockSize == nullptr || limit < 0)
      return CUDA_ERROR_INVALID_VALUE;
    unsigned most = threadLimit(function.info);
    if (limit > 0) most = std::min(most, static_cast<unsigned>(limit));
    unsigned bestThreads = 0, bestBlocks = 0;
    for (unsigned threads = roundUp(most, kWarpSize); threads > 0; threads -= kWarpSize) {
      const unsigned size = std::min(threads, most);
      const std::size_t dynamic = sharedOf != nullptr ? sharedOf(static_cast<int>(size)) : shared;
      const unsigned blocks = blocksPerMultiprocessor(function, size, dynamic);
      if (blocks * size <= bestBlocks * bestThreads) continue;
      bestThreads = size;
      bestBlocks = blocks;
    }
    *blockSize = static_cast<int>(bestThreads);
    *minGridSize = static_cast<int>(bestBlocks * kMultiprocessors);
    return CUDA_SUCCESS;
  });
}

CUresult activeBlocks(int* numBlocks, CUfunction func, int blockSize, std::size_t dynamicShared) {
  return onFunction(func, [&](Function& function) -> CUresult {
    if (numBlocks == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = static_cast<int>(
        blocksPerMultiprocessor(function, static_cast<unsigned>(blockSize), dynamicShared));
    return CUDA_SUCCESS;
  });
}

/// Blocks per cluster of a configuration; 0 if it has no cluster.
unsigned clusterBlocks(const CUlaunchConfig& config, const Function& function) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dim = config.attrs[i].value.clusterDim;
    return dim.x * dim.y * dim.z;
  }
  const auto& dim = function.info.requiredClusterDim;
  return dim[0] * dim[1] * dim[2];
}

unsigned mostClusterBlocks(const Function& function) {
  return effective(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0
             ? 2 * kBlocksPerCluster
             : kBlocksPerCluster;
}

/// A cluster stays within a group of multiprocessors. The H200's answers match six groups with 16
/// of them and two with 14 (10 for the largest clusters). Pairs fit anywhere, and a multiprocessor
/// holds at most 8 blocks of clusters.
unsigned clustersOnDevice(unsigned clusterSize, unsigned blocksEach) {
  const unsigned blocks = std::min(blocksEach, 8u);
  if (clusterSize <= 2) return kMultiprocessors * blocks / clusterSize;
  const unsigned rest = clusterSize > kBlocksPerCluster ? 10 : 14;
  return 6 * (16 * blocks / clusterSize) + 2 * (rest * blocks / clusterSize);
}

bool readable(const CUlaunchConfig* config) {
  return config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr);
}

}  // namespace

DRIVER_CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func,
                                                        int blockSize, size_t dynamicSMemSize) {
  return activeBlocks(numBlocks, func, blockSize, dynamicSMemSize);
}

DRIVER_CALL cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                                 int blockSize,
                                                                 size_t dynamicSMemSize,
                                                                 unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return activeBlocks(numBlocks, func, blockSize, dynamicSMemSize);
}

DRIVER_CALL cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                             CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                             size_t dynamicSMemSize, int blockSizeLimit) {
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                            dynamicSMemSize, blockSizeLimit);
}

DRIVER_CALL cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                      CUfunction func,
                                                      CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                      size_t dynamicSMemSize, int blockSizeLimit,
                                                      unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return potentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                            dynamicSMemSize, blockSizeLimit);
}

DRIVER_CALL cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func,
                                                    int numBlocks, int blockSize) {
  return onFunction(func, [&](Function& function) -> CUresult {
    if (dynamicSmemSize == nullptr || numBlocks <= 0 || blockSize <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (blocksPerMultiprocessor(function, static_cast<unsigned>(blockSize), 0) <
        static_cast<unsigned>(numBlocks)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned share =
        kSharedPerMultiprocessor / static_cast<unsigned>(numBlocks) / kSharedUnit * kSharedUnit;
    if (share < function.info.staticSharedBytes) return CUDA_ERROR_INVALID_VALUE;
    const auto allowed =
        static_cast<unsigned>(effective(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
    *dynamicSmemSize = std::min(share - function.info.staticSharedBytes, allowed);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func,
                                               const CUlaunchConfig* config) {
  return onFunction(func, [&](Function& function) -> CUresult {
    if (clusterSize == nullptr || !readable(config)) return CUDA_ERROR_INVALID_VALUE;
    *clusterSize = static_cast<int>(mostClusterBlocks(function));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func,
                                         const CUlaunchConfig* config) {
  return onFunction(func, [&](Function& function) -> CUresult {
    if (numClusters == nullptr || !readable(config)) return CUDA_ERROR_INVALID_VALUE;
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    const unsigned blocks = blocksPerMultiprocessor(function, threads, config->sharedMemBytes);
    const unsigned size = clusterBlocks(*config, function);
    if (size > mostClusterBlocks(function)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *numClusters = size == 0 ? 0 : static_cast<int>(clustersOnDevice(size, blocks));
    return CUDA_SUCCESS;
  });
}
