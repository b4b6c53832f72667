#include "native/worker/driver/devices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace worker {

namespace {

/// Attributes that read 0, because the calls of these features are not supported
/// (docs/architecture.md).
constexpr CUdevice_attribute kMasked[] = {
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
    CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1,
    CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
    CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,
};

void describeAttributes(const Driver& driver, CUdevice device, wire::DeviceInfo& info) {
  for (std::size_t id = 1; id < wire::kDeviceAttributes; ++id) {
    const auto attribute = static_cast<CUdevice_attribute>(id);
    info.attributeKnown[id] =
        driver.cuDeviceGetAttribute(&info.attributes[id], attribute, device) == CUDA_SUCCESS;
    if (std::ranges::find(kMasked, attribute) != std::end(kMasked)) info.attributes[id] = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)
      info.attributes[id] &= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
}

CUresult describe(const Driver& driver, CUdevice device, wire::DeviceInfo& info) {
  if (const CUresult status = driver.cuDeviceGetName(info.name, sizeof info.name, device);
      status != CUDA_SUCCESS)
    return status;
  CUuuid uuid{};
  if (const CUresult status = driver.cuDeviceGetUuid_v2(&uuid, device); status != CUDA_SUCCESS)
    return status;
  std::memcpy(info.uuid, &uuid, sizeof info.uuid);
  size_t bytes = 0;
  if (const CUresult status = driver.cuDeviceTotalMem_v2(&bytes, device); status != CUDA_SUCCESS)
    return status;
  info.totalMemory = bytes;
  driver.cuDeviceGetPCIBusId(info.pciBusId, sizeof info.pciBusId, device);
  describeAttributes(driver, device, info);
  return CUDA_SUCCESS;
}

}  // namespace

std::vector<wire::DeviceInfo> describeDevices(const Driver& driver, CUresult& status) {
  int count = 0;
  status = driver.cuDeviceGetCount(&count);
  std::vector<wire::DeviceInfo> devices(
      status == CUDA_SUCCESS ? std::min<std::size_t>(count, wire::kMaxDevices) : 0);
  for (std::size_t i = 0; i < devices.size() && status == CUDA_SUCCESS; ++i) {
    CUdevice device = 0;
    status = driver.cuDeviceGet(&device, static_cast<int>(i));
    if (status == CUDA_SUCCESS) status = describe(driver, device, devices[i]);
  }
  if (status != CUDA_SUCCESS) devices.clear();
  return devices;
}

void showOnly(std::vector<wire::DeviceInfo>& devices, std::string_view uuid) {
  const auto shown = std::ranges::find_if(
      devices, [&](const wire::DeviceInfo& device) { return uuidText(device.uuid) == uuid; });
  devices = {shown == devices.end() ? devices.front() : *shown};
}

void limitMemory(std::vector<wire::DeviceInfo>& devices, std::uint64_t limit) {
  for (auto& device : devices)
    device.totalMemory = limit > 0 ? std::min(device.totalMemory, limit) : device.totalMemory;
}

std::string uuidText(const std::uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

std::string uuidText(const CUuuid& uuid) {
  std::uint8_t bytes[sizeof uuid.bytes];
  std::memcpy(bytes, uuid.bytes, sizeof bytes);
  return uuidText(bytes);
}

}  // namespace worker
