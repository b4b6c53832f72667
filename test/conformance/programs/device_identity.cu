// The names of a GPU lead back to it, and earlier forms of questions agree with the newest.
// conformance: flags=-lcuda judges=itself
#include <cstring>

#include "by_name.h"

static int attributeOf(CUdevice_attribute attribute) {
  int value = -1;
  EXPECT_OK(cuDeviceGetAttribute(&value, attribute, 0));
  return value;
}

static void names() {
  char bus[32] = {};
  CUdevice device = -1;
  EXPECT_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
  EXPECT(std::strlen(bus) == 12);
  EXPECT_OK(cuDeviceGetByPCIBusId(&device, bus));
  EXPECT(device == 0);
  EXPECT(cuDeviceGetByPCIBusId(&device, "0000:ff:1f.7") == CUDA_ERROR_INVALID_DEVICE ||
         cuDeviceGetByPCIBusId(&device, "0000:ff:1f.7") == CUDA_ERROR_INVALID_VALUE);
  CUuuid earlier{}, newest{};
  EXPECT_OK(byName("cuDeviceGetUuid", &earlier, CUdevice{0}));
  EXPECT_OK(byName("cuDeviceGetUuid_v2", &newest, CUdevice{0}));
  EXPECT(std::memcmp(&earlier, &newest, sizeof earlier) == 0);
}

static void sizes() {
  std::size_t bytes = 0;
  EXPECT_OK(cuDeviceTotalMem(&bytes, 0));
  EXPECT(bytes > 0);
  int major = 0, minor = -1;
  EXPECT_OK(cuDeviceComputeCapability(&major, &minor, 0));
  EXPECT(major == attributeOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT(minor == attributeOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CUdevprop properties{};
  EXPECT_OK(cuDeviceGetProperties(&properties, 0));
  EXPECT(properties.maxThreadsPerBlock == attributeOf(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  EXPECT(properties.SIMDWidth == attributeOf(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  EXPECT(properties.clockRate == attributeOf(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
}

static void abilities() {
  int value = -1;
  EXPECT_OK(cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
  EXPECT(value == 0 || value == 1);
  EXPECT_OK(cuDeviceCanAccessPeer(&value, 0, 0));
  EXPECT(value == 0);
}

/// The form of cuGetProcAddress before CUDA 12, which has no status.
static void entryPoints() {
  void* found = nullptr;
  EXPECT_OK(byName("cuGetProcAddress", "cuMemAlloc", &found, 3020, cuuint64_t{0}));
  EXPECT(found == dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
}

int main() {
  startDriver();
  names();
  sizes();
  abilities();
  entryPoints();
  return verdict();
}
