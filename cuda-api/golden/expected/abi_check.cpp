// Generated. Do not edit, change cuda-api/.
// All versions of every function are declared, and nothing is renamed, when these are defined.
#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>
#include <string_view>
#include <type_traits>

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

constexpr bool sameButSpaces(std::string_view one, std::string_view two) {
  while (!one.empty() || !two.empty()) {
    if (!one.empty() && one.front() == ' ') {
      one.remove_prefix(1);
    } else if (!two.empty() && two.front() == ' ') {
      two.remove_prefix(1);
    } else {
      if (one.empty() || two.empty() || one.front() != two.front()) return false;
      one.remove_prefix(1);
      two.remove_prefix(1);
    }
  }
  return true;
}

static_assert(sameButSpaces(TEXT(CU_TOY_WORDS), "4"));
static_assert(sameButSpaces(TEXT(CU_STREAM_PER_THREAD), "((CUstream)0x2)"));
static_assert(sizeof(CUresult) == 4);
static_assert(CUDA_SUCCESS == 0);
static_assert(CUDA_ERROR_INVALID_VALUE == 1);
static_assert(CUDA_ERROR_OUT_OF_MEMORY == 2);
static_assert(CUDA_ERROR_DEVICE_UNAVAILABLE == 46);
static_assert(CUDA_ERROR_NOT_SUPPORTED == 801);
static_assert(sizeof(CUtoyOrder) == 4);
static_assert(CU_TOY_BACKWARD == -1);
static_assert(CU_TOY_FORWARD == 1);
static_assert(std::is_same_v<CUdevice, int>);
static_assert(std::is_same_v<CUtoyAddress, unsigned long long>);
static_assert(std::is_same_v<CUstream, struct CUstream_st*>);
static_assert(std::is_same_v<CUmodule, struct CUmod_st*>);
static_assert(std::is_same_v<CUmemGenericAllocationHandle, unsigned long long>);
static_assert(std::is_same_v<CUtoyCallback, void (*)(CUstream, void*)>);
static_assert(sizeof(CUtoyBox) == 32 && alignof(CUtoyBox) == 16);
static_assert(offsetof(CUtoyBox, place) == 0 && sizeof(static_cast<CUtoyBox*>(nullptr)->place) == 16);
static_assert(offsetof(CUtoyBox, name) == 16 && sizeof(static_cast<CUtoyBox*>(nullptr)->name) == 3);
static_assert(offsetof(CUtoyBox, reserved) == 24 && sizeof(static_cast<CUtoyBox*>(nullptr)->reserved) == 8);
static_assert(sizeof(CUtoyPlace) == 16 && alignof(CUtoyPlace) == 8);
static_assert(offsetof(CUtoyPlace, bytes) == 0 && sizeof(static_cast<CUtoyPlace*>(nullptr)->bytes) == 12);
static_assert(offsetof(CUtoyPlace, point) == 0 && sizeof(static_cast<CUtoyPlace*>(nullptr)->point) == 16);
static_assert(offsetof(CUtoyPlace, point.x) == 0 && sizeof(static_cast<CUtoyPlace*>(nullptr)->point.x) == 4);
static_assert(offsetof(CUtoyPlace, point.y) == 8 && sizeof(static_cast<CUtoyPlace*>(nullptr)->point.y) == 8);
static_assert(offsetof(CUtoyPlace, order) == 0 && sizeof(static_cast<CUtoyPlace*>(nullptr)->order) == 4);
static_assert(sizeof(CUtoyNode) == 16 && alignof(CUtoyNode) == 8);
static_assert(offsetof(CUtoyNode, callback) == 0 && sizeof(static_cast<CUtoyNode*>(nullptr)->callback) == 8);
static_assert(offsetof(CUtoyNode, next) == 8 && sizeof(static_cast<CUtoyNode*>(nullptr)->next) == 8);
static_assert(std::is_same_v<decltype(&cuToyInit), CUresult (*)(unsigned int)>, "cuToyInit");
static_assert(std::is_same_v<decltype(&cuToyExport), CUresult (*)(CUtoyNode*)>, "cuToyExport");
static_assert(std::is_same_v<decltype(&cuToyOld), CUresult (*)(unsigned int)>, "cuToyOld");
static_assert(std::is_same_v<decltype(&cuToyOpen), CUresult (*)(CUstream*, CUdevice)>, "cuToyOpen");
static_assert(std::is_same_v<decltype(&cuToyOpen_v2), CUresult (*)(CUstream*, CUdevice)>, "cuToyOpen_v2");
static_assert(std::is_same_v<decltype(&cuToyClose), CUresult (*)(CUstream)>, "cuToyClose");
static_assert(std::is_same_v<decltype(&cuToyWait), CUresult (*)(CUstream)>, "cuToyWait");
static_assert(std::is_same_v<decltype(&cuToyWait_ptsz), CUresult (*)(CUstream)>, "cuToyWait_ptsz");
static_assert(std::is_same_v<decltype(&cuToyMark), CUresult (*)(CUstream)>, "cuToyMark");
static_assert(std::is_same_v<decltype(&cuToyFill), CUresult (*)(unsigned long long, const CUtoyBox*, const CUdevice*, CUstream)>, "cuToyFill");
static_assert(std::is_same_v<decltype(&cuToyFill_ptsz), CUresult (*)(unsigned long long, const CUtoyBox*, const CUdevice*, CUstream)>, "cuToyFill_ptsz");
static_assert(std::is_same_v<decltype(&cuToyCopy), CUresult (*)(void*, const void*, size_t)>, "cuToyCopy");
static_assert(std::is_same_v<decltype(&cuToyCopy_ptds), CUresult (*)(void*, const void*, size_t)>, "cuToyCopy_ptds");
static_assert(std::is_same_v<decltype(&cuToyPaint), CUresult (*)(CUtoyAddress, size_t, CUstream)>, "cuToyPaint");
static_assert(std::is_same_v<decltype(&cuToyPlay), CUresult (*)(CUmodule, CUstream)>, "cuToyPlay");
static_assert(std::is_same_v<decltype(&cuToyLoad), CUresult (*)(CUmodule*, const char*, const void*)>, "cuToyLoad");
static_assert(std::is_same_v<decltype(&cuToyPart), CUresult (*)(CUmemGenericAllocationHandle*, size_t*, CUmodule)>, "cuToyPart");
static_assert(std::is_same_v<decltype(&cuToyGather), CUresult (*)(const CUstream*, const CUtoyOrder*, const CUtoyOrder*, unsigned int, CUmodule*, unsigned short*, CUtoyBox*)>, "cuToyGather");
static_assert(std::is_same_v<decltype(&cuToyAsk), CUresult (*)(int*, CUdevice)>, "cuToyAsk");
static_assert(std::is_same_v<PFN_cuToyInit_v2000, decltype(&cuToyInit)>);
static_assert(std::is_same_v<PFN_cuToyExport_v9000, decltype(&cuToyExport)>);
static_assert(std::is_same_v<PFN_cuToyOld_v2000, decltype(&cuToyOld)>);
static_assert(std::is_same_v<PFN_cuToyOpen_v2000, decltype(&cuToyOpen)>);
static_assert(std::is_same_v<PFN_cuToyOpen_v3000, decltype(&cuToyOpen_v2)>);
static_assert(std::is_same_v<PFN_cuToyOpenStream_v4000, decltype(&cuToyOpen_v2)>);
static_assert(std::is_same_v<PFN_cuToyClose_v2000, decltype(&cuToyClose)>);
static_assert(std::is_same_v<PFN_cuToyWait_v2000, decltype(&cuToyWait)>);
static_assert(std::is_same_v<PFN_cuToyWait_v7000_ptsz, decltype(&cuToyWait)>);
static_assert(std::is_same_v<PFN_cuToyMark_v2000, decltype(&cuToyMark)>);
static_assert(std::is_same_v<PFN_cuToyFill_v2000, decltype(&cuToyFill)>);
static_assert(std::is_same_v<PFN_cuToyFill_v7000_ptsz, decltype(&cuToyFill)>);
static_assert(std::is_same_v<PFN_cuToyCopy_v2000, decltype(&cuToyCopy)>);
static_assert(std::is_same_v<PFN_cuToyCopy_v7000_ptds, decltype(&cuToyCopy)>);
static_assert(std::is_same_v<PFN_cuToyPaint_v2000, decltype(&cuToyPaint)>);
static_assert(std::is_same_v<PFN_cuToyPlay_v2000, decltype(&cuToyPlay)>);
static_assert(std::is_same_v<PFN_cuToyLoad_v2000, decltype(&cuToyLoad)>);
static_assert(std::is_same_v<PFN_cuToyPart_v2000, decltype(&cuToyPart)>);
static_assert(std::is_same_v<PFN_cuToyGather_v2000, decltype(&cuToyGather)>);
static_assert(std::is_same_v<PFN_cuToyAsk_v2000, decltype(&cuToyAsk)>);

#if __has_include(<cudaToy.h>)
#include <cudaToy.h>
static_assert(std::is_same_v<decltype(&cuToyLink), CUresult (*)(CUtoyNode*)>, "cuToyLink");
#endif
