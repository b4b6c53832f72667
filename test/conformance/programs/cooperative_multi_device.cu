// cuLaunchCooperativeKernelMultiDevice with a list of one GPU: the grid is resident as a whole, and default streams are refused.
// conformance: flags="-lcuda -diag-suppress=1444 -Xcompiler=-Wno-deprecated-declarations" judges=itself
#include <cooperative_groups.h>

#include "stream_memory.h"

namespace cg = cooperative_groups;

/// Each block adds to the sum, and after the barrier of the grid reads it.
extern "C" __global__ void together(unsigned* sum, unsigned* seen, unsigned by) {
  if (threadIdx.x == 0) atomicAdd(sum, by);
  cg::this_grid().sync();
  if (threadIdx.x == 0) seen[blockIdx.x] = *sum;
}

int main() {
  useContext();
  const Words words;
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(together)));
  const CUstream stream = makeStream();
  CUdeviceptr sum = words.device, seen = words.device + 16;
  unsigned by = 5;
  void* arguments[] = {&sum, &seen, &by};
  CUDA_LAUNCH_PARAMS params{};
  params.function = function;
  params.gridDimX = 4, params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 32, params.blockDimY = params.blockDimZ = 1;
  params.hStream = stream;
  params.kernelParams = arguments;
  OK(cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
  OK(cuLaunchCooperativeKernelMultiDevice(&params, 1, CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC));
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(0) == 40);
  for (int block = 0; block < 4; ++block) EXPECT(words.at(4 + block) == 40);
  EXPECT(cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0) != CUDA_SUCCESS);
  EXPECT(cuLaunchCooperativeKernelMultiDevice(&params, 0, 0) != CUDA_SUCCESS);
  params.gridDimX = 1'000'000;
  FAILS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
  params.gridDimX = 4;
  params.hStream = nullptr;
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
  OK(cuStreamDestroy(stream));
  return verdict();
}
