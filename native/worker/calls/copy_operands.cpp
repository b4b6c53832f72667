#include "native/worker/calls/copy_operands.h"

#include <algorithm>

#include "native/worker/session/thread.h"

namespace worker {

namespace {

/// References to the fields of one end.
template <class Host>
struct Operand {
  CUmemorytype& type;
  Host*& host;
  CUdeviceptr device;
  CUarray& array;
  std::size_t &pitch, &height;
  std::size_t x, y, z;
};

/// The driver reads a source and writes a destination.
bool mayUse(const SharedMemory& shared, const Operand<const void>&, std::uint64_t begin,
            std::uint64_t bytes) {
  return shared.contains(begin, bytes);
}
bool mayUse(const SharedMemory& shared, const Operand<void>&, std::uint64_t begin,
            std::uint64_t bytes) {
  return shared.containsWritable(begin, bytes);
}

/// Whether the rows lie within memory that is shared with the client, if they begin there.
template <class Host>
bool isShared(const Thread& thread, std::uint64_t begin, const Operand<Host>& end,
              const CUDA_MEMCPY3D& copy) {
  constexpr std::size_t kMost = std::size_t{1} << 40;  // so that the sums below cannot overflow
  for (const std::size_t each :
       {end.pitch, end.height, end.x, end.y, end.z, copy.WidthInBytes, copy.Height, copy.Depth}) {
    if (each > kMost) return false;
  }
  using Wide = unsigned __int128;
  const Wide width = std::max(end.pitch, end.x + copy.WidthInBytes);
  const Wide rows = std::max(end.height, end.y + std::max<std::size_t>(copy.Height, 1));
  if (rows > kMost / std::max<Wide>(width, 1)) return false;
  const Wide layer = Wide{end.z} + std::max<std::size_t>(copy.Depth, 1) - 1;
  const Wide row = Wide{end.y} + std::max<std::size_t>(copy.Height, 1) - 1;
  const Wide bytes = layer * width * rows + row * width + end.x + copy.WidthInBytes;
  return bytes <= kMost &&
         mayUse(thread.session.shared, end, begin, static_cast<std::uint64_t>(bytes));
}

/// Distances that the client left out are filled in, so that the driver and the check agree.
template <class Host>
CUresult resolve(const Thread& thread, Operand<Host> end, const CUDA_MEMCPY3D& copy) {
  if (end.type == CU_MEMORYTYPE_ARRAY)
    return thread.find<CUarray>(reinterpret_cast<std::uint64_t>(end.array), &end.array);
  end.array = nullptr;
  if (end.type == CU_MEMORYTYPE_UNIFIED) {
    const bool shared = isShared(thread, end.device, end, copy);
    end.type = shared ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (shared) end.host = reinterpret_cast<Host*>(end.device);
  }
  if (end.type == CU_MEMORYTYPE_DEVICE) return CUDA_SUCCESS;
  if (end.type != CU_MEMORYTYPE_HOST ||
      !isShared(thread, reinterpret_cast<std::uint64_t>(end.host), end, copy))
    return CUDA_ERROR_INVALID_VALUE;
  if (end.pitch == 0) end.pitch = end.x + copy.WidthInBytes;
  if (end.height == 0) end.height = end.y + copy.Height;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult resolveOperands(const Thread& thread, CUDA_MEMCPY3D& copy) {
  copy.reserved0 = copy.reserved1 = nullptr;
  const Operand<const void> from{copy.srcMemoryType, copy.srcHost,  copy.srcDevice,
                                 copy.srcArray,      copy.srcPitch, copy.srcHeight,
                                 copy.srcXInBytes,   copy.srcY,     copy.srcZ};
  const Operand<void> to{copy.dstMemoryType, copy.dstHost,  copy.dstDevice,
                         copy.dstArray,      copy.dstPitch, copy.dstHeight,
                         copy.dstXInBytes,   copy.dstY,     copy.dstZ};
  const CUresult status = resolve(thread, from, copy);
  return status == CUDA_SUCCESS ? resolve(thread, to, copy) : status;
}

}  // namespace worker
