// Flags, affinity and attachments of contexts.
// conformance: flags=-lcuda
#include "show_driver.h"

static void flags() {
  unsigned flags = 99;
  const CUresult result = cuCtxGetFlags(&flags);
  std::printf("flags: %s %x\n", resultName(result), flags);
}

int main() {
  CUcontext primary = nullptr, own = nullptr, attached = nullptr, current = nullptr;
  CUexecAffinityParam affinity{};
  SHOW(cuInit(0));
  SHOW(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
  SHOW(cuDevicePrimaryCtxRetain(&primary, 0));
  SHOW(cuCtxSetCurrent(primary));
  flags();
  SHOW(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
  flags();
  SHOW(cuCtxSetFlags(CU_CTX_LMEM_RESIZE_TO_MAX));
  flags();
  SHOW(cuCtxSetFlags(0x100));
  SHOW(cuCtxSetFlags(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
  flags();
  SHOW(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  std::printf("multiprocessors: %s\n", yesNo(affinity.param.smCount.val > 0));
  SHOW(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX));
  SHOW(cuCtxAttach(&attached, 1));
  SHOW(cuCtxAttach(&attached, 0));
  std::printf("the primary context: %s\n", yesNo(attached == primary));
  SHOW(cuCtxDetach(attached));
  SHOW(cuCtxCreate(&own, nullptr, 0, 0));
  flags();
  SHOW(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
  flags();
  SHOW(cuCtxAttach(&attached, 0));
  std::printf("the own context: %s\n", yesNo(attached == own));
  SHOW(cuCtxDetach(own));
  SHOW(cuCtxGetCurrent(&current));
  std::printf("still current: %s\n", yesNo(current == own));
  SHOW(cuCtxDetach(own));
  SHOW(cuCtxGetCurrent(&current));
  std::printf("the primary context is current: %s\n", yesNo(current == primary));
}
