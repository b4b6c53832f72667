// Generated. Do not edit, change cuda-api/.
#include "cuda_abi.h"
#include "interposer/session/call.h"
#include "interposer/trace/traced.h"
#include "interposer_bodies.h"
#include "remote.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// In a program built for per-thread default streams, stream 0 means the thread's own.
inline CUstream perThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

namespace answers {

CUresult cuToyLink(CUtoyNode*) { return interposer::unsupported("cuToyLink", "this build lacks it"); }
CUresult cuToyExport(CUtoyNode*) { return interposer::unsupported("cuToyExport", "a toy stays in its room"); }
CUresult cuToyOld(unsigned int) { return interposer::constant(CUDA_ERROR_INVALID_VALUE); }

}  // namespace answers

struct Bodies {
  CUresult (*cuToyInit)(unsigned int);
  CUresult (*cuToyLink)(CUtoyNode*);
  CUresult (*cuToyExport)(CUtoyNode*);
  CUresult (*cuToyOld)(unsigned int);
  CUresult (*cuToyOpen)(CUstream*, CUdevice);
  CUresult (*cuToyOpen_v2)(CUstream*, CUdevice);
  CUresult (*cuToyClose)(CUstream);
  CUresult (*cuToyWait)(CUstream);
  CUresult (*cuToyMark)(CUstream);
  CUresult (*cuToyFill)(unsigned long long, const CUtoyBox*, const CUdevice*, CUstream);
  CUresult (*cuToyCopy)(void*, const void*, size_t, CUstream);
  CUresult (*cuToyPaint)(CUtoyAddress, size_t, CUstream);
  CUresult (*cuToyPlay)(CUmodule, CUstream);
  CUresult (*cuToyLoad)(CUmodule*, const char*, const void*);
  CUresult (*cuToyPart)(CUmemGenericAllocationHandle*, size_t*, CUmodule);
  CUresult (*cuToyGather)(const CUstream*, const CUtoyOrder*, const CUtoyOrder*, unsigned int, CUmodule*, unsigned short*, CUtoyBox*);
  CUresult (*cuToyAsk)(int*, CUdevice);
};

Bodies bodies = {
    &interposer::cuToyInit,
    &answers::cuToyLink,
    &answers::cuToyExport,
    &answers::cuToyOld,
    &remote::cuToyOpen_v2,
    &remote::cuToyOpen_v2,
    &remote::cuToyClose,
    &remote::cuToyWait,
    &remote::cuToyMark,
    &remote::cuToyFill,
    &interposer::cuToyCopy,
    &remote::cuToyPaint,
    &remote::cuToyPlay,
    &interposer::cuToyLoad,
    &remote::cuToyPart,
    &remote::cuToyGather,
    &remote::cuToyAsk,
};

using interposer::trace::Traced;
constexpr Bodies kTraced = {
    &Traced<0, &interposer::cuToyInit>::call,
    &Traced<1, &answers::cuToyLink>::call,
    &Traced<2, &answers::cuToyExport>::call,
    &Traced<3, &answers::cuToyOld>::call,
    &Traced<4, &remote::cuToyOpen_v2>::call,
    &Traced<5, &remote::cuToyOpen_v2>::call,
    &Traced<6, &remote::cuToyClose>::call,
    &Traced<7, &remote::cuToyWait>::call,
    &Traced<8, &remote::cuToyMark>::call,
    &Traced<9, &remote::cuToyFill>::call,
    &Traced<10, &interposer::cuToyCopy>::call,
    &Traced<11, &remote::cuToyPaint>::call,
    &Traced<12, &remote::cuToyPlay>::call,
    &Traced<13, &interposer::cuToyLoad>::call,
    &Traced<14, &remote::cuToyPart>::call,
    &Traced<15, &remote::cuToyGather>::call,
    &Traced<16, &remote::cuToyAsk>::call,
};

}  // namespace

void interposer::trace::traceCalls() { bodies = kTraced; }

EXPORT CUresult cuToyInit(unsigned int flags) { return bodies.cuToyInit(flags); }
EXPORT CUresult cuToyLink(CUtoyNode* node) { return bodies.cuToyLink(node); }
EXPORT CUresult cuToyExport(CUtoyNode* node) { return bodies.cuToyExport(node); }
EXPORT CUresult cuToyOld(unsigned int flags) { return bodies.cuToyOld(flags); }
EXPORT CUresult cuToyOpen(CUstream* stream, CUdevice device) { return bodies.cuToyOpen(stream, device); }
EXPORT CUresult cuToyOpen_v2(CUstream* stream, CUdevice device) { return bodies.cuToyOpen_v2(stream, device); }
EXPORT CUresult cuToyClose(CUstream stream) { return bodies.cuToyClose(stream); }
EXPORT CUresult cuToyWait(CUstream stream) { return bodies.cuToyWait(stream); }
EXPORT CUresult cuToyWait_ptsz(CUstream stream) { return bodies.cuToyWait(perThread(stream)); }
EXPORT CUresult cuToyMark(CUstream stream) { return bodies.cuToyMark(stream); }
EXPORT CUresult cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) { return bodies.cuToyFill(address, box, device, stream); }
EXPORT CUresult cuToyFill_ptsz(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) { return bodies.cuToyFill(address, box, device, perThread(stream)); }
EXPORT CUresult cuToyCopy(void* to, const void* from, size_t bytes) { return bodies.cuToyCopy(to, from, bytes, nullptr); }
EXPORT CUresult cuToyCopy_ptds(void* to, const void* from, size_t bytes) { return bodies.cuToyCopy(to, from, bytes, CU_STREAM_PER_THREAD); }
EXPORT CUresult cuToyPaint(CUtoyAddress address, size_t bytes, CUstream stream) { return bodies.cuToyPaint(address, bytes, stream); }
EXPORT CUresult cuToyPlay(CUmodule module, CUstream stream) { return bodies.cuToyPlay(module, stream); }
EXPORT CUresult cuToyLoad(CUmodule* module, const char* name, const void* image) { return bodies.cuToyLoad(module, name, image); }
EXPORT CUresult cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module) { return bodies.cuToyPart(part, bytes, module); }
EXPORT CUresult cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box) { return bodies.cuToyGather(streams, orders, more, count, modules, sizes, box); }
EXPORT CUresult cuToyAsk(int* answer, CUdevice device) { return bodies.cuToyAsk(answer, device); }
