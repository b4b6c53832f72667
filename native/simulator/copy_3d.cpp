// Copies of layers of rows, as CUDA_MEMCPY3D describes them.
#include <algorithm>
#include <limits>

#include "native/simulator/copy.h"
#include "native/simulator/memory.h"

namespace simulator {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 4;

/// One side of a copy: where it begins, and the distances of its rows and layers.
struct Volume {
  CUmemorytype type;
  std::uint64_t host, device;
  std::size_t x, y, z, pitch, height;
};

/// False if the product is larger than any memory.
bool multiply(std::size_t a, std::size_t b, std::size_t& product) {
  product = a * b;
  return a == 0 || b <= kMost / a;
}

/// Fills in distances that the program left out, and checks that rows and layers do not overlap.
bool complete(Volume& volume, const CUDA_MEMCPY3D& request, std::size_t& layer) {
  const std::size_t width = volume.x + request.WidthInBytes;
  const std::size_t height = volume.y + request.Height;
  if (volume.x > kMost || volume.y > kMost || width > kMost || height > kMost) return false;
  if (volume.pitch == 0) volume.pitch = width;
  if (volume.height == 0) volume.height = height;
  const bool rows = request.Height > 1 || request.Depth > 1;
  if ((rows && volume.pitch < width) || (request.Depth > 1 && volume.height < height)) return false;
  std::size_t whole = 0;
  return multiply(volume.pitch, volume.height, layer) &&
         multiply(layer, std::max<std::size_t>(request.Depth, 1), whole) &&
         multiply(layer, volume.z, whole) && multiply(volume.pitch, volume.y, whole);
}

CUresult place(const Volume& volume, std::size_t layer, std::uint64_t& address, Side& side) {
  switch (volume.type) {
    case CU_MEMORYTYPE_HOST: side = Side::host; break;
    case CU_MEMORYTYPE_DEVICE: side = Side::device; break;
    case CU_MEMORYTYPE_UNIFIED: side = Side::any; break;
    case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  address = side == Side::host ? volume.host : volume.device;
  address += volume.z * layer + volume.y * volume.pitch + volume.x;
  return CUDA_SUCCESS;
}

CUmemorytype memoryType(std::uint64_t address, Side side) {
  if (side == Side::device) return CU_MEMORYTYPE_DEVICE;
  const auto found = Allocations::all().find(address);
  return side == Side::host || !found || found->host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

}  // namespace

CUresult describe(const CUDA_MEMCPY3D& request, Copy& copy) {
  Volume source{request.srcMemoryType, reinterpret_cast<std::uint64_t>(request.srcHost),
                request.srcDevice,     request.srcXInBytes,
                request.srcY,          request.srcZ,
                request.srcPitch,      request.srcHeight};
  Volume destination{request.dstMemoryType, reinterpret_cast<std::uint64_t>(request.dstHost),
                     request.dstDevice,     request.dstXInBytes,
                     request.dstY,          request.dstZ,
                     request.dstPitch,      request.dstHeight};
  if (request.srcLOD != 0 || request.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!complete(source, request, copy.sourceLayer) ||
      !complete(destination, request, copy.destinationLayer))
    return CUDA_ERROR_INVALID_VALUE;
  copy.width = request.WidthInBytes;
  copy.rows = request.Height;
  copy.layers = request.Depth;
  copy.sourcePitch = source.pitch;
  copy.destinationPitch = destination.pitch;
  const CUresult status = place(source, copy.sourceLayer, copy.source, copy.from);
  if (status != CUDA_SUCCESS) return status;
  return place(destination, copy.destinationLayer, copy.destination, copy.to);
}

CUDA_MEMCPY3D parametersOf(const Copy& copy) {
  CUDA_MEMCPY3D parameters{};
  parameters.srcMemoryType = memoryType(copy.source, copy.from);
  parameters.dstMemoryType = memoryType(copy.destination, copy.to);
  if (parameters.srcMemoryType == CU_MEMORYTYPE_HOST) {
    parameters.srcHost = reinterpret_cast<const void*>(copy.source);
  } else {
    parameters.srcDevice = copy.source;
  }
  if (parameters.dstMemoryType == CU_MEMORYTYPE_HOST) {
    parameters.dstHost = reinterpret_cast<void*>(copy.destination);
  } else {
    parameters.dstDevice = copy.destination;
  }
  parameters.srcPitch = copy.sourcePitch;
  parameters.dstPitch = copy.destinationPitch;
  parameters.srcHeight = parameters.dstHeight = copy.rows;
  parameters.WidthInBytes = copy.width;
  parameters.Height = copy.rows;
  parameters.Depth = copy.layers;
  return parameters;
}

}  // namespace simulator
