// Contexts by the calls of earlier CUDA versions, and settings of a context.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

static CUcontext current() {
  CUcontext context = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&context));
  return context;
}

static unsigned long long idOf(CUcontext context) {
  unsigned long long id = 0;
  EXPECT_OK(cuCtxGetId(context, &id));
  return id;
}

static void createAndDestroy() {
  CUcontext first = nullptr, second = nullptr, third = nullptr, popped = nullptr;
  // Beside a context of cuCtxCreate, an H200 makes no others.
  EXPECT_OK(byName("cuCtxCreate", &first, 0u, CUdevice{0}));
  EXPECT(current() == first);
  EXPECT_OK(byName("cuCtxPopCurrent", &popped));
  EXPECT(popped == first && current() == nullptr);
  EXPECT_OK(byName("cuCtxPushCurrent", first));
  EXPECT(current() == first);
  EXPECT_OK(byName("cuCtxDestroy", first));
  EXPECT(current() == nullptr);
  EXPECT_OK(byName("cuCtxCreate_v2", &second, 0u, CUdevice{0}));
  EXPECT_OK(byName("cuCtxCreate_v3", &third, static_cast<CUexecAffinityParam*>(nullptr), 0, 0u, CUdevice{0}));
  EXPECT(current() == third);
  EXPECT(idOf(second) != idOf(third));
  EXPECT_OK(cuCtxPopCurrent(&popped));
  EXPECT(popped == third && current() == second);
  EXPECT_OK(cuCtxPushCurrent(third));
  EXPECT(current() == third);
  EXPECT_OK(cuCtxDestroy(third));
  EXPECT(current() == second);
  EXPECT_OK(cuCtxDestroy(second));
  EXPECT(current() == nullptr);
}

static void settings() {
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
  EXPECT_OK(cuCtxGetCacheConfig(&cache));
  EXPECT(cache == CU_FUNC_CACHE_PREFER_NONE);
  EXPECT_OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
  EXPECT_OK(cuCtxGetCacheConfig(&cache));
  EXPECT(cache == CU_FUNC_CACHE_PREFER_L1);
  CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  EXPECT_OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
  EXPECT_OK(cuCtxGetSharedMemConfig(&banks));
  EXPECT(banks == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
  EXPECT_OK(cuCtxResetPersistingL2Cache());
}

static void profilerBrackets() {
  EXPECT_OK(byName("cuProfilerStart"));
  EXPECT_OK(byName("cuProfilerStop"));
}

/// Before the context exists, its flags may be set in either way.
static void primaryFlags() {
  unsigned flags = 0;
  int active = 1;
  EXPECT_OK(byName("cuDevicePrimaryCtxSetFlags", CUdevice{0}, unsigned{CU_CTX_SCHED_YIELD}));
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD && active == 0);
  EXPECT_OK(byName("cuDevicePrimaryCtxSetFlags_v2", CUdevice{0}, unsigned{CU_CTX_SCHED_BLOCKING_SYNC}));
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
}

int main() {
  EXPECT_OK(cuInit(0));
  primaryFlags();
  createAndDestroy();
  startDriver();
  settings();
  profilerBrackets();
  return verdict();
}
