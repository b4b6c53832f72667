// Properties and attributes that CUDA defines for this compute capability.
// conformance:
#include "show.h"

static void attribute(const char* what, cudaDeviceAttr which) {
  int value = -1;
  const cudaError_t result = cudaDeviceGetAttribute(&value, which, 0);
  std::printf("%s: %s, %d\n", what, resultName(result), value);
}

int main() {
  cudaDeviceProp p = {};
  int version = 0, flags = -1;
  std::size_t limit = 0;
  SHOW(cudaGetDeviceProperties(&p, 0));
  SHOW(cudaGetDeviceProperties(&p, 4096));
  SHOW(cudaGetLastError());
  std::printf("capability %d.%d, warp %d, SMs %d\n", p.major, p.minor, p.warpSize, p.multiProcessorCount);
  std::printf("threads %d a block, %d an SM, block %d x %d x %d, grid %d x %d x %d\n", p.maxThreadsPerBlock, p.maxThreadsPerMultiProcessor,
              p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
  std::printf("shared %zu a block, %zu with opt-in, %zu an SM, reserved %zu, registers %d a block, %d an SM, blocks %d an SM\n",
              p.sharedMemPerBlock, p.sharedMemPerBlockOptin, p.sharedMemPerMultiprocessor, p.reservedSharedMemPerBlock, p.regsPerBlock,
              p.regsPerMultiprocessor, p.maxBlocksPerMultiProcessor);
  std::printf("constant memory %zu, unified addressing %d, concurrent kernels %d, integrated %d, map host memory %d\n", p.totalConstMem,
              p.unifiedAddressing, p.concurrentKernels, p.integrated, p.canMapHostMemory);
  std::printf("has a name: %s, has memory: %s\n", yesNo(p.name[0] != 0), yesNo(p.totalGlobalMem > 0));
  attribute("compute mode", cudaDevAttrComputeMode);
  attribute("cooperative launch", cudaDevAttrCooperativeLaunch);
  attribute("stream priorities", cudaDevAttrStreamPrioritiesSupported);
  attribute("memory pools", cudaDevAttrMemoryPoolsSupported);
  attribute("can use host pointer for registered memory", cudaDevAttrCanUseHostPointerForRegisteredMem);
  attribute("no such attribute", static_cast<cudaDeviceAttr>(100000));
  SHOW(cudaGetLastError());
  SHOW(cudaRuntimeGetVersion(&version));
  std::printf("runtime %d\n", version);
  SHOW(cudaDriverGetVersion(&version));
  std::printf("driver is not older: %s\n", yesNo(version >= 13000));
  SHOW(cudaGetDeviceFlags(reinterpret_cast<unsigned*>(&flags)));
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  std::printf("stack %zu\n", limit);
  SHOW(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  std::printf("stack %zu\n", limit);
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
  std::printf("printf %s\n", yesNo(limit >= 1 << 20));
  int least = 9, greatest = 9;
  SHOW(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::printf("priorities %d to %d\n", least, greatest);
}
