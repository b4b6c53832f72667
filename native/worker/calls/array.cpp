// Arrays and mipmapped arrays. Their memory is charged before the driver takes it, and refunded
// when they are destroyed or their context ends.
#include <algorithm>

#include "native/worker/accounts/array_memory.h"
#include "native/worker/calls/device_memory.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

std::uint64_t keyOf(const void* object) { return reinterpret_cast<std::uint64_t>(object); }

/// The calls for one of the two kinds of arrays.
struct Arrays {
  using Object = CUarray;
  static constexpr auto kKind = wire::HandleKind::array;
  const Driver& driver;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  unsigned levels = 1;

  CUresult create(CUarray* array, unsigned flags) const {
    CUDA_ARRAY3D_DESCRIPTOR given = descriptor;
    given.Flags |= flags;
    return driver.cuArray3DCreate_v2(array, &given);
  }
  CUresult require(CUDA_ARRAY_MEMORY_REQUIREMENTS* required, CUarray array, CUdevice device) const {
    return driver.cuArrayGetMemoryRequirements(required, array, device);
  }
  CUresult destroy(CUarray array) const { return driver.cuArrayDestroy(array); }
};

struct Mipmaps {
  using Object = CUmipmappedArray;
  static constexpr auto kKind = wire::HandleKind::mipmappedArray;
  const Driver& driver;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  unsigned levels = 1;

  CUresult create(CUmipmappedArray* array, unsigned flags) const {
    CUDA_ARRAY3D_DESCRIPTOR given = descriptor;
    given.Flags |= flags;
    return driver.cuMipmappedArrayCreate(array, &given, levels);
  }
  CUresult require(CUDA_ARRAY_MEMORY_REQUIREMENTS* required, CUmipmappedArray array,
                   CUdevice device) const {
    return driver.cuMipmappedArrayGetMemoryRequirements(required, array, device);
  }
  CUresult destroy(CUmipmappedArray array) const { return driver.cuMipmappedArrayDestroy(array); }
};

/// The size that the driver states for the same array without memory; the largest number if it
/// states none.
template <class Calls>
std::uint64_t statedBytes(const Thread& thread, const Calls& calls) {
  const Driver& driver = thread.driver;
  const RelaxedCapture relaxed(driver, thread.session.captures);
  CUdevice device = 0;
  int known = 0;
  typename Calls::Object twin = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS required{};
  if (driver.cuArrayGetMemoryRequirements == nullptr ||
      driver.cuMipmappedArrayGetMemoryRequirements == nullptr ||
      driver.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&known, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
                                  device) != CUDA_SUCCESS ||
      known == 0 || calls.create(&twin, CUDA_ARRAY3D_DEFERRED_MAPPING) != CUDA_SUCCESS)
    return ~std::uint64_t{0};
  const CUresult status = calls.require(&required, twin, device);
  calls.destroy(twin);
  return status == CUDA_SUCCESS && required.size > 0 ? required.size : ~std::uint64_t{0};
}

HeldMemory::Reading readHeld(const Thread& thread) {
  const RelaxedCapture relaxed(thread.driver, thread.session.captures);
  return thread.session.held.read();
}

/// Whether what the process holds since `before` fits into the quota.
bool fits(const Thread& thread, const HeldMemory::Reading& before) {
  const RelaxedCapture relaxed(thread.driver, thread.session.captures);
  return !thread.session.held.grew(before) || thread.session.held.settle();
}

/// Larger than any GPU's limits. The driver refuses it, too.
bool isTooLarge(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  return descriptor.Width > kMost || descriptor.Height > kMost || descriptor.Depth > kMost;
}

template <class Calls>
CUresult create(Thread& thread, const Calls& calls, typename Calls::Object* array) {
  if (isTooLarge(calls.descriptor)) return CUDA_ERROR_INVALID_VALUE;
  // Memory is mapped by cuMemMapArrayAsync, which is not supported.
  if ((calls.descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  Quota& quota = thread.session.quota;
  const std::uint64_t bytes =
      rounded(std::min(mostArrayBytes(calls.descriptor, calls.levels), statedBytes(thread, calls)));
  const HeldMemory::Reading before = readHeld(thread);
  if (!charge(thread, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = calls.create(array, 0);
  if (status != CUDA_SUCCESS) return quota.refund(bytes), status;
  if (!fits(thread, before)) {
    calls.destroy(*array);
    quota.refund(bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  remember(thread, keyOf(*array), bytes);
  return CUDA_SUCCESS;
}

/// Only arrays that were created have a charge: planes and mipmap levels end with their arrays.
template <class Calls>
CUresult destroy(Thread& thread, const Calls& calls, typename Calls::Object array) {
  Session& session = thread.session;
  const auto charge = session.quota.take(keyOf(array));
  if (!charge) return CUDA_ERROR_INVALID_HANDLE;
  // The driver waits for work that uses the array. Meanwhile no other call may find it.
  session.handles.remove(session.handles.handleOf(Calls::kKind, array));
  thread.passTicket(charge->owner);
  const CUresult status = calls.destroy(array);
  if (status == CUDA_SUCCESS)
    session.quota.refund(charge->bytes);
  else
    session.quota.remember(keyOf(array), charge->bytes, charge->owner);
  return status;
}

}  // namespace

CUresult cuArrayCreate_v2(Thread& thread, CUarray* pHandle,
                          const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{pAllocateArray->Width,  pAllocateArray->Height,      0,
                                           pAllocateArray->Format, pAllocateArray->NumChannels, 0};
  return create(thread, Arrays{thread.driver, descriptor}, pHandle);
}

CUresult cuArray3DCreate_v2(Thread& thread, CUarray* pHandle,
                            const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return create(thread, Arrays{thread.driver, *pAllocateArray}, pHandle);
}

CUresult cuArrayDestroy(Thread& thread, CUarray hArray) {
  return destroy(thread, Arrays{thread.driver, {}}, hArray);
}

CUresult cuMipmappedArrayCreate(Thread& thread, CUmipmappedArray* pHandle,
                                const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  return create(thread, Mipmaps{thread.driver, *pMipmappedArrayDesc, numMipmapLevels}, pHandle);
}

CUresult cuMipmappedArrayDestroy(Thread& thread, CUmipmappedArray hMipmappedArray) {
  return destroy(thread, Mipmaps{thread.driver, {}}, hMipmappedArray);
}

}  // namespace worker
