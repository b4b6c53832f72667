#include "native/worker/driver/own_device.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <type_traits>

namespace worker {

namespace {

Driver below;

bool isOwn(CUdevice device) { return device == 0; }
bool isOwn(const CUmemLocation& place) {
  return place.type != CU_MEM_LOCATION_TYPE_DEVICE || isOwn(place.id);
}
bool isOwn(const CUmemAccessDesc& access) { return isOwn(access.location); }
bool isOwn(const CUmemAllocationProp& properties) { return isOwn(properties.location); }
bool isOwn(const CUmemPoolProps& properties) { return isOwn(properties.location); }
bool areOwn(const CUmemAccessDesc* first, std::size_t count) {
  return first == nullptr ||
         std::ranges::all_of(std::span(first, count), [](const auto& each) { return isOwn(each); });
}
bool isOwn(const CUgraphNodeParams& node) {
  return node.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
         (isOwn(node.alloc.poolProps) &&
          areOwn(node.alloc.accessDescs, node.alloc.accessDescCount));
}

template <class Object>
bool isOwn(const Object* object) {
  return object == nullptr || isOwn(*object);
}

template <auto Member, class Function = std::remove_cvref_t<decltype(below.*Member)>>
struct Guarded;

template <auto Member, class... Arguments>
struct Guarded<Member, CUresult (*)(Arguments...)> {
  /// With arguments that name GPUs at these places.
  template <std::size_t... Places>
  static CUresult call(Arguments... arguments) {
    const auto all = std::tie(arguments...);
    if (!(isOwn(std::get<Places>(all)) && ...)) return CUDA_ERROR_INVALID_DEVICE;
    return (below.*Member)(arguments...);
  }
};

template <auto Member, std::size_t... Places>
void guard(Driver& driver) {
  if (driver.*Member != nullptr) driver.*Member = &Guarded<Member>::template call<Places...>;
}

void guardDevices(Driver& driver) {
  guard<&Driver::cuArrayGetMemoryRequirements, 2>(driver);
  guard<&Driver::cuMipmappedArrayGetMemoryRequirements, 2>(driver);
  guard<&Driver::cuCtxCreate_v2, 2>(driver);
  guard<&Driver::cuCtxCreate_v4, 3>(driver);
  guard<&Driver::cuDeviceGetHostAtomicCapabilities, 3>(driver);
  guard<&Driver::cuDeviceGraphMemTrim, 0>(driver);
  guard<&Driver::cuDeviceGetGraphMemAttribute, 0>(driver);
  guard<&Driver::cuDeviceSetGraphMemAttribute, 0>(driver);
  guard<&Driver::cuGreenCtxCreate, 2>(driver);
  guard<&Driver::cuDeviceGetDevResource, 0>(driver);
  guard<&Driver::cuKernelGetAttribute, 3>(driver);
  guard<&Driver::cuKernelSetAttribute, 3>(driver);
  guard<&Driver::cuKernelSetCacheConfig, 2>(driver);
  guard<&Driver::cuDeviceSetMemPool, 0>(driver);
  guard<&Driver::cuDeviceGetMemPool, 1>(driver);
  guard<&Driver::cuDeviceGetDefaultMemPool, 1>(driver);
  guard<&Driver::cuDeviceCanAccessPeer, 1, 2>(driver);
  guard<&Driver::cuDeviceGetP2PAttribute, 2, 3>(driver);
  guard<&Driver::cuDeviceGetP2PAtomicCapabilities, 3, 4>(driver);
  guard<&Driver::cuDevicePrimaryCtxRetain, 1>(driver);
  guard<&Driver::cuDevicePrimaryCtxRelease_v2, 0>(driver);
  guard<&Driver::cuDevicePrimaryCtxSetFlags_v2, 0>(driver);
  guard<&Driver::cuDevicePrimaryCtxReset_v2, 0>(driver);
  guard<&Driver::cuDeviceGetTexture1DLinearMaxWidth, 3>(driver);
}

void guardPlaces(Driver& driver) {
  guard<&Driver::cuGraphAddNode_v2, 5>(driver);
  guard<&Driver::cuGraphNodeSetParams, 1>(driver);
  guard<&Driver::cuGraphExecNodeSetParams, 2>(driver);
  guard<&Driver::cuMemPoolGetAccess, 2>(driver);
  guard<&Driver::cuMemPoolCreate, 1>(driver);
  guard<&Driver::cuMemGetDefaultMemPool, 1>(driver);
  guard<&Driver::cuMemGetMemPool, 1>(driver);
  guard<&Driver::cuMemSetMemPool, 0>(driver);
  guard<&Driver::cuMemCreate, 2>(driver);
  guard<&Driver::cuMemGetAccess, 1>(driver);
  guard<&Driver::cuMemGetAllocationGranularity, 1>(driver);
  driver.cuMemPoolSetAccess = [](CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
    return areOwn(access, count) ? below.cuMemPoolSetAccess(pool, access, count)
                                 : CUDA_ERROR_INVALID_DEVICE;
  };
  driver.cuMemSetAccess = [](CUdeviceptr begin, size_t bytes, const CUmemAccessDesc* access,
                             size_t count) {
    return areOwn(access, count) ? below.cuMemSetAccess(begin, bytes, access, count)
                                 : CUDA_ERROR_INVALID_DEVICE;
  };
}

}  // namespace

void allowFirstDeviceOnly(Driver& driver) {
  below = driver;
  guardDevices(driver);
  guardPlaces(driver);
}

}  // namespace worker
