// Copies of layers of rows, as CUDA_MEMCPY3D describes them.
#include <algorithm>
#include <limits>

#include "native/simulator/array.h"
#include "native/simulator/copy.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"

namespace simulator {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 4;

/// One side of a request.
struct Volume {
  CUmemorytype type;
  std::uint64_t host, device;
  CUarray array;
  std::size_t x, y, z, pitch, height;
};

/// Layout of one side: its first byte, and the distances of its rows and layers.
struct Place {
  std::uint64_t address = 0;
  std::size_t pitch = 0, layer = 0;
  Side side = Side::any;
  std::size_t elementBytes = 0;  ///< of an array
};

/// False if the product is larger than any memory.
bool multiply(std::size_t a, std::size_t b, std::size_t& product) {
  product = a * b;
  return a == 0 || b <= kMost / a;
}

/// The distances of rows and layers: those that the program left out follow from the copy's width
/// and height. False if rows or layers overlap.
bool measure(const Volume& volume, const CUDA_MEMCPY3D& request, Place& place) {
  const std::size_t width = volume.x + request.WidthInBytes;
  const std::size_t height = volume.y + request.Height;
  if (volume.x > kMost || volume.y > kMost || width > kMost || height > kMost) return false;
  place.pitch = volume.pitch == 0 ? width : volume.pitch;
  const std::size_t rowsOfLayer = volume.height == 0 ? height : volume.height;
  const bool rows = request.Height > 1 || request.Depth > 1;
  if ((rows && place.pitch < width) || (request.Depth > 1 && rowsOfLayer < height)) return false;
  std::size_t whole = 0;
  return multiply(place.pitch, rowsOfLayer, place.layer) &&
         multiply(place.layer, std::max<std::size_t>(request.Depth, 1), whole) &&
         multiply(place.layer, volume.z, whole) && multiply(place.pitch, volume.y, whole);
}

bool inside(std::size_t begin, std::size_t count, std::size_t extent) {
  return begin <= extent && count <= extent - begin;
}

CUresult placeInArray(const Volume& volume, const CUDA_MEMCPY3D& request, Place& place) {
  const auto array = Handles<Array>::all().find(volume.array);
  if (array == nullptr || array->elementBytes() == 0) return CUDA_ERROR_INVALID_VALUE;
  place.side = Side::array;
  place.elementBytes = array->elementBytes();
  place.pitch = array->rowBytes();
  place.layer = array->layerBytes();
  if (!inside(volume.x, request.WidthInBytes, place.pitch) ||
      !inside(volume.y, request.Height, array->rows()) ||
      !inside(volume.z, request.Depth, array->layers()))
    return CUDA_ERROR_INVALID_VALUE;
  place.address = array->address + volume.z * place.layer + volume.y * place.pitch + volume.x;
  return CUDA_SUCCESS;
}

CUresult placeInMemory(const Volume& volume, const CUDA_MEMCPY3D& request, Place& place) {
  switch (volume.type) {
    case CU_MEMORYTYPE_HOST: place.side = Side::host; break;
    case CU_MEMORYTYPE_DEVICE: place.side = Side::device; break;
    case CU_MEMORYTYPE_UNIFIED: place.side = Side::any; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (!measure(volume, request, place)) return CUDA_ERROR_INVALID_VALUE;
  place.address = place.side == Side::host ? volume.host : volume.device;
  place.address += volume.z * place.layer + volume.y * place.pitch + volume.x;
  return CUDA_SUCCESS;
}

CUresult locate(const Volume& volume, const CUDA_MEMCPY3D& request, Place& place) {
  return volume.type == CU_MEMORYTYPE_ARRAY ? placeInArray(volume, request, place)
                                            : placeInMemory(volume, request, place);
}

CUmemorytype memoryType(std::uint64_t address, Side side) {
  if (side == Side::device) return CU_MEMORYTYPE_DEVICE;
  const auto found = Allocations::all().find(address);
  return side == Side::host || !found || found->host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/// One side of a copy again as a request describes it.
Volume volumeOf(const Copy& copy, Side side, std::uint64_t address, std::size_t pitch,
                std::size_t layer, const ArrayPlace& array) {
  if (side == Side::array)
    return {CU_MEMORYTYPE_ARRAY, 0, 0, array.array, array.x, array.y, array.z, 0, 0};
  const std::size_t height = pitch == 0 || copy.layers <= 1 ? copy.rows : layer / pitch;
  const CUmemorytype type = memoryType(address, side);
  const bool host = type == CU_MEMORYTYPE_HOST;
  return {type, host ? address : 0, host ? 0 : address, nullptr, 0, 0, 0, pitch, height};
}

}  // namespace

CUresult describe(const CUDA_MEMCPY3D& request, Copy& copy) {
  const Volume source{request.srcMemoryType, reinterpret_cast<std::uint64_t>(request.srcHost),
                      request.srcDevice,     request.srcArray,
                      request.srcXInBytes,   request.srcY,
                      request.srcZ,          request.srcPitch,
                      request.srcHeight};
  const Volume destination{request.dstMemoryType, reinterpret_cast<std::uint64_t>(request.dstHost),
                           request.dstDevice,     request.dstArray,
                           request.dstXInBytes,   request.dstY,
                           request.dstZ,          request.dstPitch,
                           request.dstHeight};
  if (request.srcLOD != 0 || request.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  Place from, to;
  CUresult status = locate(source, request, from);
  if (status == CUDA_SUCCESS) status = locate(destination, request, to);
  if (status != CUDA_SUCCESS) return status;
  if (from.elementBytes != 0 && to.elementBytes != 0 && from.elementBytes != to.elementBytes)
    return CUDA_ERROR_INVALID_VALUE;
  copy = {.destination = to.address,
          .source = from.address,
          .width = request.WidthInBytes,
          .rows = request.Height,
          .destinationPitch = to.pitch,
          .sourcePitch = from.pitch,
          .to = to.side,
          .from = from.side,
          .layers = request.Depth,
          .destinationLayer = to.layer,
          .sourceLayer = from.layer,
          .toArray = {request.dstArray, request.dstXInBytes, request.dstY, request.dstZ},
          .fromArray = {request.srcArray, request.srcXInBytes, request.srcY, request.srcZ}};
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D parametersOf(const Copy& copy) {
  const Volume from =
      volumeOf(copy, copy.from, copy.source, copy.sourcePitch, copy.sourceLayer, copy.fromArray);
  const Volume to = volumeOf(copy, copy.to, copy.destination, copy.destinationPitch,
                             copy.destinationLayer, copy.toArray);
  return {.srcXInBytes = from.x,
          .srcY = from.y,
          .srcZ = from.z,
          .srcMemoryType = from.type,
          .srcHost = reinterpret_cast<const void*>(from.host),
          .srcDevice = from.device,
          .srcArray = from.array,
          .srcPitch = from.pitch,
          .srcHeight = from.height,
          .dstXInBytes = to.x,
          .dstY = to.y,
          .dstZ = to.z,
          .dstMemoryType = to.type,
          .dstHost = reinterpret_cast<void*>(to.host),
          .dstDevice = to.device,
          .dstArray = to.array,
          .dstPitch = to.pitch,
          .dstHeight = to.height,
          .WidthInBytes = copy.width,
          .Height = copy.rows,
          .Depth = copy.layers};
}

}  // namespace simulator
