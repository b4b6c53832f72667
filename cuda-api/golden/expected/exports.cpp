// Generated. Do not edit, change cuda-api/.
#include "cuda_abi.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// In a program built for per-thread default streams, stream 0 means the thread's own.
inline CUstream perThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

}  // namespace

EXPORT CUresult cuToyInit(unsigned int flags) { return interposer::cuToyInit(flags); }
EXPORT CUresult cuToyLink(CUtoyNode*) { return interposer::unsupported("cuToyLink", "this build lacks it"); }
EXPORT CUresult cuToyExport(CUtoyNode*) { return interposer::unsupported("cuToyExport", "a toy stays in its room"); }
EXPORT CUresult cuToyOld(unsigned int) { return interposer::constant(CUDA_ERROR_INVALID_VALUE); }
EXPORT CUresult cuToyOpen(CUstream* stream, CUdevice device) { return cuToyOpen_v2(stream, device); }
EXPORT CUresult cuToyOpen_v2(CUstream* stream, CUdevice device) { return remote::cuToyOpen_v2(stream, device); }
EXPORT CUresult cuToyClose(CUstream stream) { return remote::cuToyClose(stream); }
EXPORT CUresult cuToyWait(CUstream stream) { return remote::cuToyWait(stream); }
EXPORT CUresult cuToyWait_ptsz(CUstream stream) { return remote::cuToyWait(perThread(stream)); }
EXPORT CUresult cuToyMark(CUstream stream) { return remote::cuToyMark(stream); }
EXPORT CUresult cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) { return remote::cuToyFill(address, box, device, stream); }
EXPORT CUresult cuToyFill_ptsz(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) { return remote::cuToyFill(address, box, device, perThread(stream)); }
EXPORT CUresult cuToyCopy(void* to, const void* from, size_t bytes) { return interposer::cuToyCopy(to, from, bytes, nullptr); }
EXPORT CUresult cuToyCopy_ptds(void* to, const void* from, size_t bytes) { return interposer::cuToyCopy(to, from, bytes, CU_STREAM_PER_THREAD); }
EXPORT CUresult cuToyPaint(unsigned long long address, size_t bytes, CUstream stream) { return remote::cuToyPaint(address, bytes, stream); }
EXPORT CUresult cuToyPlay(CUmodule module, CUstream stream) { return remote::cuToyPlay(module, stream); }
EXPORT CUresult cuToyLoad(CUmodule* module, const char* name, const void* image) { return interposer::cuToyLoad(module, name, image); }
EXPORT CUresult cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module) { return remote::cuToyPart(part, bytes, module); }
EXPORT CUresult cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box) { return remote::cuToyGather(streams, orders, more, count, modules, sizes, box); }
EXPORT CUresult cuToyAsk(int* answer, CUdevice device) { return remote::cuToyAsk(answer, device); }
