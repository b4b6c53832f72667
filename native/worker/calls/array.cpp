// Arrays and mipmapped arrays. Their memory is charged before the driver takes it, and refunded
// when they are destroyed or their context ends.
#include <algorithm>
#include <vector>

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

/// Memory of an array. The program maps memory into some kinds of arrays itself; these need page
/// tables, of 4 KiB for 2 MiB at most.
template <class Calls>
std::uint64_t bytesOf(const Thread& thread, const Calls& calls) {
  const std::uint64_t most = mostArrayBytes(calls.descriptor, calls.levels);
  constexpr unsigned kMapped = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
  if ((calls.descriptor.Flags & kMapped) != 0) return rounded(most / 512 + 4096);
  constexpr std::uint64_t kShared = std::uint64_t{1} << 20;
  if (most <= kShared) return shareOfBlock(most);  // what is stated may be whole pages
  const std::uint64_t stated = statedBytes(thread, calls);
  return shareOfBlock(stated == ~std::uint64_t{0} ? most : std::max(most, stated));
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

/// Beyond the largest extent of the device's arrays. The driver refuses it, too: it must not look
/// as if the quota were too small.
bool isTooLarge(const Thread& thread, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  std::uint64_t most = 0;
  CUdevice device = 0;
  thread.driver.cuCtxGetDevice(&device);
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH}) {
    int extent = 0;
    thread.driver.cuDeviceGetAttribute(&extent, attribute, device);
    most = std::max(most, static_cast<std::uint64_t>(std::max(extent, 0)));
  }
  return descriptor.Width > most || descriptor.Height > most || descriptor.Depth > most;
}

template <class Calls>
CUresult create(Thread& thread, const Calls& calls, typename Calls::Object* array) {
  if (isTooLarge(thread, calls.descriptor)) return CUDA_ERROR_INVALID_VALUE;
  Quota& quota = thread.session.quota;
  const std::uint64_t bytes = bytesOf(thread, calls);
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
    session.quota.refund(charge->bytes + session.physicalMemory.arrayEnded(array));
  else
    session.quota.remember(keyOf(array), charge->bytes, charge->owner);
  return status;
}

/// The context of an array that was created; null for planes and levels, which have no charge.
const void* contextOf(Thread& thread, const void* array) {
  Quota& quota = thread.session.quota;
  const auto charge = quota.take(keyOf(array));
  if (!charge) return nullptr;
  quota.remember(keyOf(array), charge->bytes, charge->owner);
  return charge->owner;
}

/// Replaces handles by objects. `context`: that of the array, with which the mapping ends.
CUresult resolve(Thread& thread, CUarrayMapInfo& info, const void*& context) {
  const bool isArray = info.resourceType == CU_RESOURCE_TYPE_ARRAY;
  if ((!isArray && info.resourceType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) ||
      info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
    return CUDA_ERROR_INVALID_VALUE;
  const auto handle = reinterpret_cast<std::uint64_t>(info.resource.array);
  if (const CUresult status = isArray
                                  ? thread.find<CUarray>(handle, &info.resource.array)
                                  : thread.find<CUmipmappedArray>(handle, &info.resource.mipmap);
      status != CUDA_SUCCESS)
    return status;
  context = contextOf(thread, info.resource.array);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& memory = info.memHandle.memHandle;
  if (info.memOperationType == CU_MEM_OPERATION_TYPE_MAP)
    return thread.find<CUmemGenericAllocationHandle>(memory, &memory);
  memory = 0;
  return info.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

/// Memory counts as mapped before the driver maps it: then it cannot be mapped without a charge.
CUresult cuMemMapArrayAsync(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto given = in.getArray<CUarrayMapInfo>(wire::kMaxFrameBytes);
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuMemMapArrayAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  std::vector<CUarrayMapInfo> list(given.begin(), given.end());
  for (CUarrayMapInfo& info : list) {
    const void* context = nullptr;
    if (const CUresult status = resolve(thread, info, context); status != CUDA_SUCCESS)
      return status;
    if (info.memOperationType == CU_MEM_OPERATION_TYPE_MAP)
      thread.session.physicalMemory.mappedInto(info.memHandle.memHandle, info.resource.array,
                                               context);
  }
  return thread.driver.cuMemMapArrayAsync(list.data(), static_cast<unsigned>(list.size()), stream);
}

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
