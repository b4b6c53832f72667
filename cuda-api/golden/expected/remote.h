// Generated. Do not edit, change cuda-api/.
// Calls made in the worker.
#pragma once

#include "cuda_abi.h"

namespace remote {

CUresult cuToyOpen_v2(CUstream* stream, CUdevice device);
CUresult cuToyClose(CUstream stream);
CUresult cuToyWait(CUstream stream);
CUresult cuToyMark(CUstream stream);
CUresult cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream);
CUresult cuToyPaint(CUtoyAddress address, size_t bytes, CUstream stream);
CUresult cuToyPlay(CUmodule module, CUstream stream);
CUresult cuToyLoad(CUmodule* module, const char* name, const void* image);
CUresult cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module);
CUresult cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box);
CUresult cuToyAsk(int* answer, CUdevice device);

}  // namespace remote
