// Queries about devices: answered from the device list that the worker sent with its welcome.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "interposer/session/call.h"
#include "interposer/session/session.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// The device, or the error of every query about it.
CUresult find(CUdevice dev, const wire::DeviceInfo*& device) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const auto devices = Session::current()->devices();
  if (dev < 0 || static_cast<std::size_t>(dev) >= devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  device = &devices[dev];
  return CUDA_SUCCESS;
}

int attribute(const wire::DeviceInfo& device, CUdevice_attribute id) {
  return device.attributes[id];
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const wire::DeviceInfo* info = nullptr;
  if (const CUresult status = find(ordinal, info); status != CUDA_SUCCESS) return status;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Session::current()->devices().size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, len, "%s", device->name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof *uuid == sizeof device->uuid);
  std::memcpy(uuid, device->uuid, sizeof *uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->totalMemory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice dev) {
  std::size_t all = 0;
  const CUresult status = interposer::cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &all, dev);
  if (status == CUDA_SUCCESS)
    *bytes =
        static_cast<unsigned>(std::min<std::size_t>(all, std::numeric_limits<unsigned>::max()));
  return status;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  const auto id = static_cast<std::size_t>(attrib);
  if (pi == nullptr || id >= wire::kDeviceAttributes || !device->attributeKnown[id])
    return CUDA_ERROR_INVALID_VALUE;
  *pi = device->attributes[id];
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = attribute(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = attribute(*device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = {};
  prop->maxThreadsPerBlock = attribute(*device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int axis = 0; axis < 3; ++axis) {
    prop->maxThreadsDim[axis] = device->attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis];
    prop->maxGridSize[axis] = device->attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis];
  }
  prop->sharedMemPerBlock = attribute(*device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = attribute(*device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = attribute(*device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->memPitch = attribute(*device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = attribute(*device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = attribute(*device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  prop->textureAlign = attribute(*device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (pciBusId == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(pciBusId, len, "%s", device->pciBusId);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0;
  if (std::sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (std::sscanf(pciBusId, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  const auto devices = Session::current()->devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto is = [&](CUdevice_attribute id, unsigned value) {
      return attribute(devices[i], id) == static_cast<int>(value);
    };
    if (!is(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, domain) ||
        !is(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, bus) || !is(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, slot))
      continue;
    *dev = static_cast<CUdevice>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (const CUresult status = find(peerDev, device); status != CUDA_SUCCESS) return status;
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return remote::cuDeviceCanAccessPeer(canAccessPeer, dev, peerDev);
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(srcDevice, device); status != CUDA_SUCCESS) return status;
  if (const CUresult status = find(dstDevice, device); status != CUDA_SUCCESS) return status;
  if (srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return remote::cuDeviceGetP2PAttribute(value, attrib, srcDevice, dstDevice);
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  const wire::DeviceInfo* device = nullptr;
  if (const CUresult status = find(dev, device); status != CUDA_SUCCESS) return status;
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pi = 0;
  return CUDA_SUCCESS;
}

}  // namespace interposer
