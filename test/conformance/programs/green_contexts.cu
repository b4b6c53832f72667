// Green contexts: parts of the multiprocessors, a context and streams for each, their events, and what is left when they end. Without support the program ends.
// conformance: flags="-lcuda -arch=sm_90" judges=itself
#include <vector>

#include "stream_memory.h"

__global__ void fill(unsigned* at, unsigned value) { at[threadIdx.x] = value; }

struct Green {
  CUgreenCtx handle = nullptr;
  CUcontext context = nullptr;
  unsigned multiprocessors = 0;
};

Green make(CUdevResource& part) {
  Green green;
  CUdevResourceDesc description = nullptr;
  CUdevResource seen{};
  OK(cuDevResourceGenerateDesc(&description, &part, 1));
  OK(cuGreenCtxCreate(&green.handle, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(cuCtxFromGreenCtx(&green.context, green.handle));
  OK(cuGreenCtxGetDevResource(green.handle, &seen, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(seen.type == CU_DEV_RESOURCE_TYPE_SM && seen.sm.smCount == part.sm.smCount);
  OK(cuCtxGetDevResource(green.context, &seen, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(seen.sm.smCount == part.sm.smCount);
  green.multiprocessors = seen.sm.smCount;
  return green;
}

void streams(const Green& green, const Words& words) {
  CUstream stream = nullptr;
  CUgreenCtx of = nullptr;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  EXPECT(cuGreenCtxStreamCreate(&stream, green.handle, CU_STREAM_DEFAULT, 0) != CUDA_SUCCESS);
  OK(cuGreenCtxStreamCreate(&stream, green.handle, CU_STREAM_NON_BLOCKING, 0));
  OK(cuStreamGetGreenCtx(stream, &of));
  EXPECT(of == green.handle);
  OK(cuStreamGetCtx_v2(stream, &context, &of));
  EXPECT(of == green.handle);
  fill<<<1, 4, 0, stream>>>(reinterpret_cast<unsigned*>(words.device), 7);
  EXPECT_OK(cudaGetLastError());
  OK(cuStreamSynchronize(stream));
  EXPECT(words.at(0) == 7 && words.at(3) == 7);
  words.host[0] = 0;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  OK(cuStreamWaitValue32(stream, words.pinned, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuGreenCtxRecordEvent(green.handle, event));
  EXPECT(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  words.host[0] = 1;
  OK(cuEventSynchronize(event));
  OK(cuGreenCtxWaitEvent(green.handle, event));
  OK(cuStreamSynchronize(stream));
  OK(cuEventDestroy(event));
  OK(cuStreamDestroy(stream));
}

/// Memory that was allocated while a green context was current stays when that ends.
CUdeviceptr allocateIn(const Green& green) {
  CUdeviceptr memory = 0;
  CUcontext current = nullptr, popped = nullptr;
  unsigned long long id = 0, greenId = 0;
  OK(cuCtxPushCurrent(green.context));
  OK(cuCtxGetCurrent(&current));
  EXPECT(current == green.context);
  OK(cuCtxGetId(nullptr, &id));
  OK(cuGreenCtxGetId(green.handle, &greenId));
  EXPECT(id != 0 && greenId != 0);
  OK(cuMemAlloc(&memory, 64));
  OK(cuMemsetD32(memory, 9, 16));
  OK(cuCtxSynchronize());
  OK(cuCtxPopCurrent(&popped));
  return memory;
}

int main() {
  const CUcontext primary = useContext();
  const Words words;
  CUdevResource whole{}, rest{}, parts[2];
  const CUresult supported = cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM);
  if (supported == CUDA_ERROR_NOT_SUPPORTED) return verdict();
  OK(supported);
  int multiprocessors = 0;
  OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT(whole.type == CU_DEV_RESOURCE_TYPE_SM && int(whole.sm.smCount) == multiprocessors);
  unsigned groups = 0, two = 2;
  OK(cuDevSmResourceSplitByCount(nullptr, &groups, &whole, nullptr, 0, 16));
  EXPECT(groups == whole.sm.smCount / 16);
  OK(cuDevSmResourceSplitByCount(parts, &two, &whole, &rest, 0, 16));
  EXPECT(two == 2 && parts[0].sm.smCount >= 16 && parts[0].sm.smCount == parts[1].sm.smCount);
  EXPECT(rest.sm.smCount + 2 * parts[0].sm.smCount == whole.sm.smCount);
  CUdevResource wrong = whole;
  wrong.type = CU_DEV_RESOURCE_TYPE_INVALID;
  EXPECT(cuDevSmResourceSplitByCount(parts, &two, &wrong, nullptr, 0, 16) != CUDA_SUCCESS);
  EXPECT(cuGreenCtxCreate(nullptr, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS);
  const Green one = make(parts[0]), other = make(parts[1]);
  EXPECT(one.handle != other.handle && one.context != other.context && one.context != primary);
  streams(one, words);
  streams(other, words);
  const CUdeviceptr memory = allocateIn(one);
  OK(cuGreenCtxDestroy(one.handle));
  OK(cuGreenCtxDestroy(other.handle));
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, memory + 60, 4));
  EXPECT(value == 9);
  OK(cuMemFree(memory));
  return verdict();
}
