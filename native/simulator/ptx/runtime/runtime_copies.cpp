// Copies and fills of the device runtime: between places in device memory, in the order of a
// stream.
#include <cstring>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/runtime/children.h"
#include "native/simulator/ptx/runtime/device_runtime.h"

namespace simulator::ptx {
namespace {

constexpr std::uint64_t kDeviceToDevice = 3, kDefaultKind = 4;

/// A box of bytes in memory with a pitch: rows of a slice, slices of a volume.
struct Pitched {
  std::uint64_t address, pitch, slicePitch;
  std::uint64_t row(std::uint64_t y, std::uint64_t z) const {
    return address + y * pitch + z * slicePitch;
  }
};
struct Extent {
  std::uint64_t width, height, depth;  ///< width in bytes
};

// Layouts of driver_types.h.
struct PitchedPointer {
  std::uint64_t address, pitch, width, height;
};
struct Parameters3D {
  std::uint64_t sourceArray, sourcePosition[3];
  PitchedPointer source;
  std::uint64_t targetArray, targetPosition[3];
  PitchedPointer target;
  Extent extent;
  std::uint32_t kind;
};

bool readable(const Family& family, std::uint64_t address, std::uint64_t bytes) {
  return family.environment.memory->contains(address, bytes);
}

bool writable(const Family& family, std::uint64_t address, std::uint64_t bytes) {
  return family.environment.memory->containsWritable(address, bytes);
}

void fail(Family& family) {
  int none = CUDA_SUCCESS;
  family.result.compare_exchange_strong(none, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// body(y, z) checks the addresses of a row and uses them.
void eachRow(const Extent& extent, auto&& body) {
  if (extent.width == 0) return;
  MemoryUser user;
  for (std::uint64_t z = 0; z < extent.depth; ++z) {
    for (std::uint64_t y = 0; y < extent.height; ++y) {
      if (!body(y, z)) return;
      user.revoked();
    }
  }
}

std::uint64_t copy(const RuntimeCall& call, const Pitched& to, const Pitched& from,
                   const Extent& extent, std::uint64_t kind, std::uint64_t stream) {
  if (kind != kDeviceToDevice && kind != kDefaultKind) return kErrorInvalidMemcpyDirection;
  Family& family = call.warp.block->run->family;
  return call.submit(stream, {[&family, to, from, extent] {
                                eachRow(extent, [&](std::uint64_t y, std::uint64_t z) {
                                  const std::uint64_t target = to.row(y, z),
                                                      source = from.row(y, z);
                                  if (!writable(family, target, extent.width) ||
                                      !readable(family, source, extent.width))
                                    return fail(family), false;
                                  std::memmove(reinterpret_cast<void*>(target),
                                               reinterpret_cast<const void*>(source), extent.width);
                                  return true;
                                });
                              },
                              nullptr, nullptr});
}

std::uint64_t fill(const RuntimeCall& call, const Pitched& to, std::uint32_t value,
                   const Extent& extent, std::uint64_t stream) {
  Family& family = call.warp.block->run->family;
  return call.submit(stream, {[&family, to, value, extent] {
                                eachRow(extent, [&](std::uint64_t y, std::uint64_t z) {
                                  const std::uint64_t target = to.row(y, z);
                                  if (!writable(family, target, extent.width))
                                    return fail(family), false;
                                  std::memset(reinterpret_cast<void*>(target),
                                              static_cast<int>(value), extent.width);
                                  return true;
                                });
                              },
                              nullptr, nullptr});
}

Pitched linear(std::uint64_t address) { return {address, 0, 0}; }

std::uint64_t copyLinear(const RuntimeCall& call, std::uint64_t stream) {
  const std::uint64_t* a = call.arguments;
  return copy(call, linear(a[0]), linear(a[1]), {a[2], 1, 1}, call.number(3), stream);
}

std::uint64_t copy2D(const RuntimeCall& call, std::uint64_t stream) {
  const std::uint64_t* a = call.arguments;
  if (a[4] > a[1] || a[4] > a[3]) return CUDA_ERROR_INVALID_VALUE;
  return copy(call, {a[0], a[1], 0}, {a[2], a[3], 0}, {a[4], a[5], 1}, call.number(6), stream);
}

Pitched box(const PitchedPointer& pointer, const std::uint64_t (&position)[3]) {
  const std::uint64_t slice = pointer.pitch * pointer.height;
  return {pointer.address + position[0] + position[1] * pointer.pitch + position[2] * slice,
          pointer.pitch, slice};
}

std::uint64_t copy3D(const RuntimeCall& call, std::uint64_t stream) {
  const void* found =
      hostAddress(call.warp, call.lane, call.arguments[0], sizeof(Parameters3D), Use::read);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Parameters3D parameters;
  std::memcpy(&parameters, found, sizeof parameters);
  if (parameters.sourceArray != 0 || parameters.targetArray != 0) return CUDA_ERROR_INVALID_VALUE;
  return copy(call, box(parameters.target, parameters.targetPosition),
              box(parameters.source, parameters.sourcePosition), parameters.extent, parameters.kind,
              stream);
}

std::uint64_t fillLinear(const RuntimeCall& call, std::uint64_t stream) {
  return fill(call, linear(call.arguments[0]), call.number(1), {call.arguments[2], 1, 1}, stream);
}

std::uint64_t fill2D(const RuntimeCall& call, std::uint64_t stream) {
  const std::uint64_t* a = call.arguments;
  if (a[3] > a[1]) return CUDA_ERROR_INVALID_VALUE;
  return fill(call, {a[0], a[1], 0}, call.number(2), {a[3], a[4], 1}, stream);
}

/// cudaPitchedPtr (4 words), int value, cudaExtent (3 words), stream
std::uint64_t fill3D(const RuntimeCall& call, std::uint64_t stream) {
  const std::uint64_t* a = call.arguments;
  return fill(call, {a[0], a[1], a[1] * a[3]}, call.number(4), {a[5], a[6], a[7]}, stream);
}

}  // namespace

/// to, from, bytes, kind, stream
std::uint64_t memcpyAsync(const RuntimeCall& call) { return copyLinear(call, call.arguments[4]); }
std::uint64_t memcpyAsyncPerThread(const RuntimeCall& call) {
  return copyLinear(call, perThread(call.arguments[4]));
}

/// to, pitch, from, pitch, width, height, kind, stream
std::uint64_t memcpy2DAsync(const RuntimeCall& call) { return copy2D(call, call.arguments[7]); }
std::uint64_t memcpy2DAsyncPerThread(const RuntimeCall& call) {
  return copy2D(call, perThread(call.arguments[7]));
}

/// cudaMemcpy3DParms*, stream
std::uint64_t memcpy3DAsync(const RuntimeCall& call) { return copy3D(call, call.arguments[1]); }
std::uint64_t memcpy3DAsyncPerThread(const RuntimeCall& call) {
  return copy3D(call, perThread(call.arguments[1]));
}

/// to, value, bytes, stream
std::uint64_t memsetAsync(const RuntimeCall& call) { return fillLinear(call, call.arguments[3]); }
std::uint64_t memsetAsyncPerThread(const RuntimeCall& call) {
  return fillLinear(call, perThread(call.arguments[3]));
}

/// to, pitch, value, width, height, stream
std::uint64_t memset2DAsync(const RuntimeCall& call) { return fill2D(call, call.arguments[5]); }
std::uint64_t memset2DAsyncPerThread(const RuntimeCall& call) {
  return fill2D(call, perThread(call.arguments[5]));
}

std::uint64_t memset3DAsync(const RuntimeCall& call) { return fill3D(call, call.arguments[8]); }
std::uint64_t memset3DAsyncPerThread(const RuntimeCall& call) {
  return fill3D(call, perThread(call.arguments[8]));
}

}  // namespace simulator::ptx
