// Generated. Do not edit, change cuda-api/.
#include "cuda_abi.h"

#define MISSING extern "C" __attribute__((weak, visibility("default")))

MISSING CUresult cuToyInit(unsigned int) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyLink(CUtoyNode*) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyExport(CUtoyNode*) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyOld(unsigned int) { return CUDA_ERROR_INVALID_VALUE; }
MISSING CUresult cuToyOpen(CUstream*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyOpen_v2(CUstream*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyClose(CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyWait(CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyWait_ptsz(CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyMark(CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyFill(unsigned long long, const CUtoyBox*, const CUdevice*, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyFill_ptsz(unsigned long long, const CUtoyBox*, const CUdevice*, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyCopy(void*, const void*, size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyCopy_ptds(void*, const void*, size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyPaint(CUtoyAddress, size_t, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyPlay(CUmodule, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyLoad(CUmodule*, const char*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyPart(CUmemGenericAllocationHandle*, size_t*, CUmodule) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyGather(const CUstream*, const CUtoyOrder*, const CUtoyOrder*, unsigned int, CUmodule*, unsigned short*, CUtoyBox*) { return CUDA_ERROR_NOT_SUPPORTED; }
MISSING CUresult cuToyAsk(int*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }
