// The exported calls about devices.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "native/simulator/atomic_capabilities.h"
#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/machine.h"

namespace simulator {
namespace {

/// Runs body(Device&) on the device that `ordinal` names.
template <class Body>
CUresult onDevice(CUdevice ordinal, Body&& body) {
  return inDriver([&]() -> CUresult {
    Device* device = findDevice(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

/// Copies a text into a caller's array of `length`, cut to fit and always terminated.
void copyText(char* destination, int length, std::string_view text) {
  const std::size_t count = std::min<std::size_t>(text.size(), length - 1);
  std::memcpy(destination, text.data(), count);
  destination[count] = 0;
}

}  // namespace
}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuDeviceGetCount(int* count) {
  return inDriver([&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(devices().size());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGet(CUdevice* device, int ordinal) {
  return inDriver([&]() -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (findDevice(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetName(char* name, int len, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (name == nullptr || len < 1) return CUDA_ERROR_INVALID_VALUE;
    copyText(name, len, kDeviceName);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device.uuid;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid(uuid, dev); }

DRIVER_CALL cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.totalBytes;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return deviceAttribute(device.described, static_cast<int>(attrib), *pi)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = static_cast<int>(computeCapability() / 10);
    *minor = static_cast<int>(computeCapability() % 10);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    const std::string text = device.pciBusId();
    if (pciBusId == nullptr || len <= static_cast<int>(text.size()))
      return CUDA_ERROR_INVALID_VALUE;
    copyText(pciBusId, len, text);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return inDriver([&]() -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device* device = findDeviceByPciBusId(pciBusId);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *dev = device->ordinal;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;  // partitions of multiprocessors exist only under MPS
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities,
                                              const CUatomicOperation* operations,
                                              unsigned int count, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    return answerAtomics(capabilities, operations, count, 0);  // none over PCIe, as an H200
  });
}

DRIVER_CALL cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                       CUflushGPUDirectRDMAWritesScope scope) {
  return inContext([&](Context&) -> CUresult {
    const bool known = target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                       (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                        scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
