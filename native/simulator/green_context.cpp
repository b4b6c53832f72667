// Green contexts, and how the multiprocessors of a device are divided.
#include "native/simulator/green_context.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/stream.h"

namespace simulator {

/// Resources that belong together. The driver has no call that frees a description.
struct ResourceDescription {
  unsigned multiprocessors;
};

}  // namespace simulator

using namespace simulator;

namespace {

constexpr unsigned kPartition = 8;    ///< an H200's smallest part, and its alignment
constexpr unsigned kIndependent = 2;  ///< the same without blocks that run together

CUdevResource resourceOf(unsigned multiprocessors) {
  CUdevResource resource{};
  resource.type = multiprocessors > 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
  resource.sm = {multiprocessors, kPartition, kPartition};
  if (multiprocessors == 0) resource.sm = {};
  return resource;
}

CUresult give(CUdevResource* resource, CUdevResourceType type, unsigned multiprocessors) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = resourceOf(multiprocessors);
  return CUDA_SUCCESS;
}

template <class Body>
CUresult onGreen(CUgreenCtx handle, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto green = Handles<GreenContext>::all().find(handle);
    return green == nullptr ? CUDA_ERROR_INVALID_CONTEXT : body(green);
  });
}

CUcontext contextOf(const GreenContext& green) {
  return reinterpret_cast<CUcontext>(const_cast<GreenContext*>(&green));
}

}  // namespace

DRIVER_CALL cuDeviceGetDevResource(CUdevice device, CUdevResource* resource,
                                   CUdevResourceType type) {
  return inDriver([&]() -> CUresult {
    if (findDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return give(resource, type, kMultiprocessors);
  });
}

DRIVER_CALL cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  return inDriver([&]() -> CUresult {
    if (const auto green = Handles<GreenContext>::all().find(hCtx))
      return give(resource, type, green->multiprocessors);
    Context* context = nullptr;
    const CUresult status = hCtx == nullptr ? currentContext(context) : findContext(hCtx, context);
    return status == CUDA_SUCCESS ? give(resource, type, kMultiprocessors) : status;
  });
}

DRIVER_CALL cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource,
                                     CUdevResourceType type) {
  return onGreen(hCtx,
                 [&](const auto& green) { return give(resource, type, green->multiprocessors); });
}

DRIVER_CALL cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                        const CUdevResource* input, CUdevResource* remaining,
                                        unsigned int useFlags, unsigned int minCount) {
  constexpr unsigned kFlags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  return inDriver([&]() -> CUresult {
    if (nbGroups == nullptr || input == nullptr || (useFlags & ~kFlags) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const unsigned all = std::min<unsigned>(input->sm.smCount, kMultiprocessors);
    if (minCount > all) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const bool independent = (useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
    const unsigned unit = independent ? kIndependent : kPartition;
    const unsigned size = std::max(unit, (minCount + unit - 1) / unit * unit);
    const unsigned possible = all / size;
    const unsigned groups = result == nullptr ? possible : std::min(*nbGroups, possible);
    for (unsigned i = 0; result != nullptr && i < groups; ++i) result[i] = resourceOf(size);
    if (remaining != nullptr) *remaining = resourceOf(all - groups * size);
    *nbGroups = groups;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                      unsigned int nbResources) {
  return inDriver([&]() -> CUresult {
    if (phDesc == nullptr || resources == nullptr || nbResources == 0)
      return CUDA_ERROR_INVALID_VALUE;
    unsigned all = 0;
    for (unsigned i = 0; i < nbResources; ++i) {
      if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
      all += std::min<unsigned>(resources[i].sm.smCount, kMultiprocessors);
    }
    if (all > kMultiprocessors) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    auto description = std::make_shared<ResourceDescription>(ResourceDescription{all});
    *phDesc = handleOf<CUdevResourceDesc>(description.get());
    Handles<ResourceDescription>::all().add(std::move(description));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                             unsigned int flags) {
  return inDriver([&]() -> CUresult {
    const auto description = Handles<ResourceDescription>::all().find(desc);
    if (phCtx == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
      return CUDA_ERROR_INVALID_VALUE;
    CUcontext handle = nullptr;
    CUresult status = cuDevicePrimaryCtxRetain(&handle, dev);
    Context* primary = nullptr;
    if (status == CUDA_SUCCESS) status = findContext(handle, primary);
    if (status != CUDA_SUCCESS) return status;
    static std::atomic<std::uint64_t> nextId{std::uint64_t{1} << 32};
    auto green = std::make_shared<GreenContext>(
        GreenContext{*primary, dev, description->multiprocessors, nextId.fetch_add(1)});
    Handles<Context>::all().addAs(green.get(), Handles<Context>::all().find(handle));
    *phCtx = handleOf<CUgreenCtx>(green.get());
    Handles<GreenContext>::all().add(std::move(green));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return onGreen(hCtx, [&](const auto& green) {
    Handles<GreenContext>::all().remove(hCtx);
    Handles<Context>::all().remove(hCtx);
    return cuDevicePrimaryCtxRelease_v2(green->device);
  });
}

DRIVER_CALL cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return onGreen(hCtx, [&](const auto& green) -> CUresult {
    if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pContext = contextOf(*green);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  return onGreen(greenCtx, [&](const auto& green) -> CUresult {
    if (greenCtxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
  });
}

/// Covers the other streams of the primary context, too.
DRIVER_CALL cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return onGreen(hCtx,
                 [&](const auto& green) { return cuCtxRecordEvent(contextOf(*green), hEvent); });
}

DRIVER_CALL cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return onGreen(hCtx,
                 [&](const auto& green) { return cuCtxWaitEvent(contextOf(*green), hEvent); });
}

DRIVER_CALL cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phCtx = handleOf<CUgreenCtx>(stream.green.get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags,
                                   int priority) {
  return onGreen(greenCtx, [&](const auto& green) -> CUresult {
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    contextStack().push_back(&green->primary);
    const CUresult status = cuStreamCreateWithPriority(phStream, flags, priority);
    contextStack().pop_back();
    if (status == CUDA_SUCCESS) Handles<Stream>::all().find(*phStream)->green = green;
    return status;
  });
}
