// Access from one simulated GPU to another's memory.
#include "native/simulator/allocations.h"
#include "native/simulator/atomic_capabilities.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"

using namespace simulator;

namespace {

template <class Body>
CUresult onDevices(CUdevice first, CUdevice second, Body&& body) {
  return inDriver([&]() -> CUresult {
    if (findDevice(first) == nullptr || findDevice(second) == nullptr)
      return CUDA_ERROR_INVALID_DEVICE;
    return body();
  });
}

}  // namespace

DRIVER_CALL cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return onDevices(dev, peerDev, [&]() -> CUresult {
    if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = dev != peerDev ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                    CUdevice dstDevice) {
  return onDevices(srcDevice, dstDevice, [&]() -> CUresult {
    if (value == nullptr || srcDevice == dstDevice) return CUDA_ERROR_INVALID_VALUE;
    switch (attrib) {
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return CUDA_SUCCESS;
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return CUDA_SUCCESS;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

DRIVER_CALL cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities,
                                             const CUatomicOperation* operations,
                                             unsigned int count, CUdevice srcDevice,
                                             CUdevice dstDevice) {
  return onDevices(srcDevice, dstDevice, [&]() -> CUresult {
    if (srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
    constexpr unsigned kScalars = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED |
                                  CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 |
                                  CU_ATOMIC_CAPABILITY_SCALAR_64;
    return answerAtomics(capabilities, operations, count, kScalars);
  });
}

DRIVER_CALL cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  return inContext([&](Context& context) -> CUresult {
    Context* peer = nullptr;
    const CUresult status = findContext(peerContext, peer);
    if (status != CUDA_SUCCESS) return status;
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (&peer->device == &context.device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    bool added = false;
    Allocations::all().changeAccess([&] { added = context.peers.insert(peer).second; });
    return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

DRIVER_CALL cuCtxDisablePeerAccess(CUcontext peerContext) {
  return inContext([&](Context& context) -> CUresult {
    Context* peer = nullptr;
    const CUresult status = findContext(peerContext, peer);
    if (status != CUDA_SUCCESS) return status;
    bool removed = false;
    Allocations::all().changeAccess([&] { removed = context.peers.erase(peer) != 0; });
    return removed ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}
