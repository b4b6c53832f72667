#include <algorithm>

#include "interposer/code/kernels.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/launch.h"

namespace interposer {

namespace {

/// cuOccupancyMaxActiveClusters and cuOccupancyMaxPotentialClusterSize: the kernel, the
/// configuration and its attributes.
CUresult askWithConfiguration(CallNumber call, int* value, CUfunction func,
                              const CUlaunchConfig* config) {
  if (value == nullptr || config == nullptr || config->numAttrs > wire::kMaxLaunchAttributes)
    return CUDA_ERROR_INVALID_VALUE;
  Call ask;
  const std::size_t attributeBytes = config->numAttrs * sizeof(CUlaunchAttribute);
  if (!ask.begin(call, sizeof(wire::LaunchFrame) + 16 + attributeBytes, kOrdered))
    return ask.status();
  ask.encoder().put(wire::LaunchFrame{number(func),
                                      number(config->hStream),
                                      {config->gridDimX, config->gridDimY, config->gridDimZ},
                                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                                      config->sharedMemBytes,
                                      0});
  ask.encoder().putBytes(config->attrs, attributeBytes);
  wire::Decoder reply;
  const CUresult status = ask.wait(reply);
  if (status == CUDA_SUCCESS) *value = reply.get<int>();
  return status;
}

CUresult attributeOf(CUfunction function, CUfunction_attribute attribute, int& value) {
  return interposer::cuFuncGetAttribute(&value, attribute, function);
}

}  // namespace

CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func,
                                      const CUlaunchConfig* config) {
  return askWithConfiguration(CallNumber::cuOccupancyMaxActiveClusters, numClusters, func, config);
}

CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func,
                                            const CUlaunchConfig* config) {
  return askWithConfiguration(CallNumber::cuOccupancyMaxPotentialClusterSize, clusterSize, func,
                              config);
}

/// Some libraries ask before every launch. The answer depends on kernel, block and attributes only,
/// so it is cached.
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (numBlocks == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel* const kernel = findKernel(func);
  if (kernel == nullptr) return unknownHandle();
  CUdevice device = 0;
  if (const CUresult status = currentDevice(&device); status != CUDA_SUCCESS) return status;
  const auto call =
      static_cast<std::uint64_t>(CallNumber::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  const std::uint64_t context = number(Thread::current().context());
  return remembered(*kernel,
                    {call, context, static_cast<std::uint64_t>(blockSize), dynamicSMemSize, flags},
                    numBlocks, [&] {
                      return remote::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                          numBlocks, func, blockSize, dynamicSMemSize, flags);
                    });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return interposer::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      numBlocks, func, blockSize, dynamicSMemSize, 0);
}

/// Computed here, because the program's function must be called for every block size.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdevice device = 0;
  if (const CUresult status = currentDevice(&device); status != CUDA_SUCCESS) return status;
  const auto& attributes = Session::current()->devices()[device].attributes;
  int kernelLimit = 0;
  if (const CUresult status =
          attributeOf(func, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernelLimit);
      status != CUDA_SUCCESS)
    return status;
  int limit = std::min(kernelLimit, attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]);
  if (blockSizeLimit > 0) limit = std::min(limit, blockSizeLimit);
  const int warp = attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
  const int multiprocessors = attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
  int bestThreads = 0;
  *minGridSize = *blockSize = 0;
  for (int size = (limit + warp - 1) / warp * warp; size > 0; size -= warp) {
    const int threads = std::min(size, limit);
    const size_t shared = blockSizeToDynamicSMemSize != nullptr
                              ? blockSizeToDynamicSMemSize(threads)
                              : dynamicSMemSize;
    int blocks = 0;
    const CUresult status = interposer::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, func, threads, shared, flags);
    if (status != CUDA_SUCCESS) return status;
    if (blocks * threads <= bestThreads) continue;
    bestThreads = blocks * threads;
    *minGridSize = blocks * multiprocessors;
    *blockSize = threads;
    if (bestThreads >= attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR]) break;
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return interposer::cuOccupancyMaxPotentialBlockSizeWithFlags(
      minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

}  // namespace interposer
