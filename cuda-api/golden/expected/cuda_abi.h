// Generated. Do not edit, change cuda-api/.
// The CUDA driver's binary interface: types, values and prototypes. No macro renames a function.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CU_TOY_WORDS 4
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
enum CUresult : unsigned int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};
enum CUtoyOrder : int {
  CU_TOY_BACKWARD = -1,
  CU_TOY_FORWARD = 1,
};
typedef int CUdevice;
typedef unsigned long long CUtoyAddress;
typedef struct CUstream_st* CUstream;
typedef struct CUmod_st* CUmodule;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void (*CUtoyCallback)(CUstream, void*);
union CUtoyPlace {
  unsigned char bytes[12];
  struct {
    int x;
    double y;
  } point;
  struct {
    CUtoyOrder order;
  };
};
struct alignas(16) CUtoyBox {
  CUtoyPlace place;
  char name[3];
  void* reserved;
};
struct CUtoyNode {
  CUtoyCallback callback;
  CUtoyNode* next;
};

extern "C" {
CUresult cuToyInit(unsigned int flags);
CUresult cuToyLink(CUtoyNode* node);
CUresult cuToyExport(CUtoyNode* node);
CUresult cuToyOld(unsigned int flags);
CUresult cuToyOpen(CUstream* stream, CUdevice device);
CUresult cuToyOpen_v2(CUstream* stream, CUdevice device);
CUresult cuToyClose(CUstream stream);
CUresult cuToyWait(CUstream stream);
CUresult cuToyWait_ptsz(CUstream stream);
CUresult cuToyMark(CUstream stream);
CUresult cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream);
CUresult cuToyFill_ptsz(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream);
CUresult cuToyCopy(void* to, const void* from, size_t bytes);
CUresult cuToyCopy_ptds(void* to, const void* from, size_t bytes);
CUresult cuToyPaint(CUtoyAddress address, size_t bytes, CUstream stream);
CUresult cuToyPlay(CUmodule module, CUstream stream);
CUresult cuToyLoad(CUmodule* module, const char* name, const void* image);
CUresult cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module);
CUresult cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box);
CUresult cuToyAsk(int* answer, CUdevice device);
}
