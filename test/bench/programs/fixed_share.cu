// Throughput of each call that gives work to the GPU. One JSON object per line:
// {"name": "...", "value": rate}, in GB/s for copies and memsets, else in calls per second.
//   fixed_share calls SECONDS        each call in a loop of that duration
//   fixed_share busy|events SECONDS  only launches, or only event records
//   fixed_share endless SECONDS      one kernel of that duration
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20, kRow = 4096;
constexpr long long kKernelNanoseconds = 200'000;

__global__ void spin(long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s returned %d\n", what, status);
  std::exit(1);
}

/// Calls until the time is over, with a synchronization every few calls.
void measure(const char* name, double length, double perCall,
             const std::function<CUresult()>& call) {
  require(call(), name);
  require(cuCtxSynchronize(), name);
  const double begin = seconds();
  long calls = 0;
  while (seconds() - begin < length) {
    for (int i = 0; i < 4; ++i, ++calls) require(call(), name);
    require(cuCtxSynchronize(), name);
  }
  std::printf("{\"name\": \"%s\", \"value\": %.4g}\n", name,
              static_cast<double>(calls) * perCall / (seconds() - begin));
  std::fflush(stdout);
}

CUresult launch(long long nanoseconds) {
  spin<<<1024, 32>>>(nanoseconds);
  return cudaPeekAtLastError() == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

void measureCalls(double length) {
  CUcontext context = nullptr;
  CUdeviceptr to = 0, from = 0;
  require(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  require(cuMemAlloc(&to, kBytes), "cuMemAlloc");
  require(cuMemAlloc(&from, kBytes), "cuMemAlloc");
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = from;
  rows.dstDevice = to;
  rows.srcPitch = rows.dstPitch = rows.WidthInBytes = kRow;
  rows.Height = kBytes / kRow;
  CUevent event = nullptr;
  require(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  const double size = kBytes / 1e9;
  measure("cuMemcpyPeer", length, size,
          [&] { return cuMemcpyPeer(to, context, from, context, kBytes); });
  measure("cuMemcpyPeerAsync", length, size,
          [&] { return cuMemcpyPeerAsync(to, context, from, context, kBytes, nullptr); });
  measure("cuMemcpyDtoD", length, size, [&] { return cuMemcpyDtoD(to, from, kBytes); });
  measure("cuMemcpyAsync", length, size, [&] { return cuMemcpyAsync(to, from, kBytes, nullptr); });
  measure("cuMemcpy2DAsync", length, size, [&] { return cuMemcpy2DAsync(&rows, nullptr); });
  measure("cuMemsetD8Async", length, size, [&] { return cuMemsetD8Async(to, 1, kBytes, nullptr); });
  measure("cuMemsetD2D32Async", length, size,
          [&] { return cuMemsetD2D32Async(to, kRow, 1, kRow / 4, kBytes / kRow, nullptr); });
  measure("cuLaunchKernel", length, 1, [] { return launch(kKernelNanoseconds); });
  measure("cuEventRecord", length, 1, [&] { return cuEventRecord(event, nullptr); });
  // Not limited.
  measure("cuMemAlloc and cuMemFree of 1 GiB", length, 1, [] {
    CUdeviceptr memory = 0;
    const CUresult status = cuMemAlloc(&memory, std::size_t{1} << 30);
    return status == CUDA_SUCCESS ? cuMemFree(memory) : status;
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3)
    return std::fprintf(stderr, "usage: fixed_share calls|busy|events|endless SECONDS\n"), 2;
  const double length = std::atof(arguments[2]);
  if (cudaFree(nullptr) != cudaSuccess) return std::fprintf(stderr, "no GPU\n"), 1;
  if (std::strcmp(arguments[1], "calls") == 0) measureCalls(length);
  if (std::strcmp(arguments[1], "busy") == 0)
    measure("launches", length, 1, [] { return launch(kKernelNanoseconds); });
  if (std::strcmp(arguments[1], "events") == 0) {
    CUevent event = nullptr;
    require(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    measure("cuEventRecord", length, 1, [&] { return cuEventRecord(event, nullptr); });
  }
  if (std::strcmp(arguments[1], "endless") == 0) {
    require(launch(static_cast<long long>(length * 1e9)), "launch");
    const double begin = seconds();
    const cudaError_t status = cudaDeviceSynchronize();
    std::printf("{\"name\": \"endless\", \"value\": %.2f, \"status\": %d}\n", seconds() - begin,
                status);
  }
  return 0;
}
