// Arrays and mipmapped arrays: creation, descriptors, end.
#include <algorithm>
#include <bit>

#include "native/simulator/array.h"
#include "native/simulator/capture.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"
#include "native/simulator/texture.h"

using namespace simulator;

namespace {

/// Device memory of an array; 0 if the device is full.
std::uint64_t memoryFor(Context& context, std::size_t bytes) {
  return allocate(context, bytes, MemoryKind::array);
}

void releaseMemory(std::uint64_t address) {
  const auto isArray = [](const Allocation& found) { return found.kind == MemoryKind::array; };
  if (const auto taken = Allocations::all().take(address, isArray)) release(*taken);
}

/// The brightness of each pixel, and the colour of each four.
void makePlanes(Array& frame) {
  CUDA_ARRAY3D_DESCRIPTOR plane = frame.descriptor;
  plane.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  for (const unsigned channels : {1u, 2u}) {
    plane.Width = frame.descriptor.Width / channels;
    plane.Height = frame.descriptor.Height / channels;
    plane.NumChannels = channels;
    frame.planes.push_back(std::make_shared<Array>(frame.context, plane));
    frame.planes.back()->isPart = true;
  }
}

CUresult create(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = checkArray(context, descriptor, false);
    if (status != CUDA_SUCCESS) return status;
    auto array = std::make_shared<Array>(context, descriptor);
    if (descriptor.Format == CU_AD_FORMAT_NV12) makePlanes(*array);
    std::size_t bytes = array->bytes();
    for (const auto& plane : array->planes) {
      plane->address = bytes;
      bytes += plane->bytes();
    }
    array->address = memoryFor(context, bytes);
    if (array->address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    for (const auto& plane : array->planes) {
      plane->address += array->address;
      Handles<Array>::all().add(plane);
    }
    *pHandle = handleOf<CUarray>(array.get());
    Handles<Array>::all().add(std::move(array));
    return CUDA_SUCCESS;
  });
}

/// Runs body(Object&) on the array that a handle names.
template <class Object, class Handle, class Body>
CUresult on(Handle handle, Body&& body) {
  return withoutContext([&]() -> CUresult {
    const auto found = Handles<Object>::all().find(handle);
    return found == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*found);
  });
}

/// For what only arrays have that are sparse or deferred, of which there are none.
template <class Object, class Handle>
CUresult askOrdinary(Handle handle) {
  return on<Object>(handle, [&](Object&) { return CUDA_ERROR_INVALID_VALUE; });
}

/// The extents of a level of a mipmapped array. Layers do not become fewer.
CUDA_ARRAY3D_DESCRIPTOR levelOf(CUDA_ARRAY3D_DESCRIPTOR descriptor, unsigned level) {
  const auto halve = [level](std::size_t& extent) {
    if (extent != 0) extent = std::max<std::size_t>(extent >> level, 1);
  };
  halve(descriptor.Width);
  halve(descriptor.Height);
  if (shapeOf(descriptor) == ImageShape::d3) halve(descriptor.Depth);
  return descriptor;
}

unsigned mostLevels(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  std::size_t extent = std::max(descriptor.Width, descriptor.Height);
  if (shapeOf(descriptor) == ImageShape::d3) extent = std::max(extent, descriptor.Depth);
  return static_cast<unsigned>(std::bit_width(extent));
}

CUresult makeLevels(MipmappedArray& mipmapped, unsigned count) {
  constexpr std::size_t kLevelAlignment = 512;
  std::size_t bytes = 0;
  for (unsigned level = 0; level < count; ++level) {
    auto array = std::make_shared<Array>(mipmapped.context, levelOf(mipmapped.descriptor, level));
    array->isPart = true;
    array->address = bytes;
    bytes += (array->bytes() + kLevelAlignment - 1) / kLevelAlignment * kLevelAlignment;
    mipmapped.levels.push_back(std::move(array));
  }
  const std::uint64_t address = memoryFor(mipmapped.context, bytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const auto& level : mipmapped.levels) level->address += address;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_CALL cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (pAllocateArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& [width, height, format, channels] = *pAllocateArray;
  return create(pHandle, {width, height, 0, format, channels, 0});
}

DRIVER_CALL cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return pAllocateArray == nullptr ? CUDA_ERROR_INVALID_VALUE : create(pHandle, *pAllocateArray);
}

DRIVER_CALL cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return on<Array>(hArray, [&](Array& array) -> CUresult {
    if (pArrayDescriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR& whole = array.descriptor;
    *pArrayDescriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return on<Array>(hArray, [&](Array& array) -> CUresult {
    if (pArrayDescriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = array.descriptor;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuArrayDestroy(CUarray hArray) {
  return freeOutsideCapture([&]() -> CUresult {
    const auto array = Handles<Array>::all().find(hArray);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (array->isPart) return CUDA_ERROR_INVALID_VALUE;
    synchronizeAll();
    if (fault() != CUDA_SUCCESS) return fault();
    if (Handles<Array>::all().remove(hArray) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    forgetImages(*array);
    for (const auto& plane : array->planes) {
      Handles<Array>::all().remove(plane.get());
      forgetImages(*plane);
    }
    releaseMemory(array->address);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray array) {
  return askOrdinary<Array>(array);
}
DRIVER_CALL cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*,
                                                CUmipmappedArray mipmap) {
  return askOrdinary<MipmappedArray>(mipmap);
}
DRIVER_CALL cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray array, CUdevice) {
  return askOrdinary<Array>(array);
}
DRIVER_CALL cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*,
                                                  CUmipmappedArray mipmap, CUdevice) {
  return askOrdinary<MipmappedArray>(mipmap);
}
DRIVER_CALL cuArrayGetPlane(CUarray* pPlaneArray, CUarray hArray, unsigned int planeIdx) {
  return on<Array>(hArray, [&](Array& array) -> CUresult {
    if (pPlaneArray == nullptr || planeIdx >= array.planes.size()) return CUDA_ERROR_INVALID_VALUE;
    *pPlaneArray = handleOf<CUarray>(array.planes[planeIdx].get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMipmappedArrayCreate(CUmipmappedArray* pHandle,
                                   const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                   unsigned int numMipmapLevels) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (pHandle == nullptr || pMipmappedArrayDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = checkArray(context, *pMipmappedArrayDesc, true);
    if (status != CUDA_SUCCESS) return status;
    const unsigned levels = std::clamp(numMipmapLevels, 1u, mostLevels(*pMipmappedArrayDesc));
    auto made = std::make_shared<MipmappedArray>(context, *pMipmappedArrayDesc);
    status = makeLevels(*made, levels);
    if (status != CUDA_SUCCESS) return status;
    *pHandle = handleOf<CUmipmappedArray>(made.get());
    for (const auto& level : made->levels) Handles<Array>::all().add(level);
    Handles<MipmappedArray>::all().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray,
                                     unsigned int level) {
  return on<MipmappedArray>(hMipmappedArray, [&](MipmappedArray& mipmapped) -> CUresult {
    if (pLevelArray == nullptr || level >= mipmapped.levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = handleOf<CUarray>(mipmapped.levels[level].get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return freeOutsideCapture([&]() -> CUresult {
    if (Handles<MipmappedArray>::all().find(hMipmappedArray) == nullptr)
      return CUDA_ERROR_INVALID_HANDLE;
    synchronizeAll();
    if (fault() != CUDA_SUCCESS) return fault();
    const auto removed = Handles<MipmappedArray>::all().remove(hMipmappedArray);
    if (removed == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& level : removed->levels) {
      Handles<Array>::all().remove(level.get());
      forgetImages(*level);
    }
    releaseMemory(removed->levels.front()->address);
    return CUDA_SUCCESS;
  });
}
