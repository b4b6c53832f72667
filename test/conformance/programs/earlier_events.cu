// Events and streams by the calls of earlier CUDA versions.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

static void events() {
  CUevent begin = nullptr, end = nullptr;
  CUdeviceptr memory = 0;
  EXPECT_OK(cuMemAlloc(&memory, 1 << 20));
  EXPECT_OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  EXPECT_OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  EXPECT_OK(cuEventRecordWithFlags(begin, nullptr, CU_EVENT_RECORD_DEFAULT));
  EXPECT_OK(cuMemsetD8Async(memory, 3, 1 << 20, nullptr));
  EXPECT_OK(cuEventRecordWithFlags(end, nullptr, CU_EVENT_RECORD_DEFAULT));
  EXPECT_OK(cuEventSynchronize(end));
  float earlier = -1, newest = -2;
  EXPECT_OK(byName("cuEventElapsedTime", &earlier, begin, end));
  EXPECT_OK(byName("cuEventElapsedTime_v2", &newest, begin, end));
  EXPECT(earlier > 0 && earlier == newest);
  EXPECT_OK(byName("cuEventDestroy", begin));
  EXPECT_OK(byName("cuEventDestroy", end));
  EXPECT(valueAt(memory) == 0x03030303);
  EXPECT_OK(cuMemFree(memory));
}

static void streams(CUcontext context) {
  CUstream one = nullptr, other = nullptr;
  EXPECT_OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  unsigned long long oneId = 0, otherId = 0;
  EXPECT_OK(cuStreamGetId(one, &oneId));
  EXPECT_OK(cuStreamGetId(other, &otherId));
  EXPECT(oneId != otherId);
  CUcontext owner = nullptr;
  EXPECT_OK(byName("cuStreamGetCtx", one, &owner));
  EXPECT(owner == context);
  owner = nullptr;
  CUgreenCtx green = nullptr;
  EXPECT_OK(byName("cuStreamGetCtx_v2", one, &owner, &green));
  EXPECT(owner == context && green == nullptr);
  CUdevice device = -1;
  EXPECT_OK(cuStreamGetDevice(one, &device));
  EXPECT(device == 0);
  EXPECT_OK(byName("cuStreamDestroy", one));
  EXPECT_OK(cuStreamDestroy(other));
}

static void attributes() {
  CUstream from = nullptr, to = nullptr;
  EXPECT_OK(cuStreamCreate(&from, CU_STREAM_DEFAULT));
  EXPECT_OK(cuStreamCreate(&to, CU_STREAM_DEFAULT));
  CUstreamAttrValue policy{};
  policy.syncPolicy = CU_SYNC_POLICY_YIELD;
  EXPECT_OK(cuStreamSetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy));
  EXPECT_OK(cuStreamCopyAttributes(to, from));
  CUstreamAttrValue copied{};
  EXPECT_OK(cuStreamGetAttribute(to, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &copied));
  EXPECT(copied.syncPolicy == CU_SYNC_POLICY_YIELD);
  EXPECT_OK(cuStreamDestroy(from));
  EXPECT_OK(cuStreamDestroy(to));
}

static void hostMemory() {
  void* pinned = nullptr;
  EXPECT_OK(cuMemAllocHost(&pinned, 64));
  static_cast<char*>(pinned)[63] = 1;
  CUdeviceptr memory = 0;
  unsigned always = 1;
  EXPECT_OK(cuMemAlloc(&memory, 64));
  EXPECT_OK(cuPointerSetAttribute(&always, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
  EXPECT_OK(cuPointerGetAttribute(&always, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
  EXPECT(always == 1);
  EXPECT_OK(cuMemFree(memory));
  EXPECT_OK(cuMemFreeHost(pinned));
}

int main() {
  CUcontext context = startDriver();
  events();
  streams(context);
  attributes();
  hostMemory();
  return verdict();
}
