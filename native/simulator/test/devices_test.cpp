// Several simulated GPUs: which are visible, their names and numbers, copies and access between
// them. Only the simulated driver can be told how many GPUs it has.
#include <cstring>
#include <string>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

/// Runs `test` in a forked child; this process never initialises the driver.
template <class Test>
void inChild(const char* visible, Test&& test) {
  unit::inChild([&] {
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("NVIDIA_VIRTUAL_SIMULATED_GPUS", "3", 1);
    setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "256MiB", 1);
    if (visible != nullptr) setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    test();
  });
}

std::string uuidOf(CUdevice device) {
  CUuuid uuid{};
  OK(DRIVER(cuDeviceGetUuid_v2)(&uuid, device));
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                  static_cast<unsigned char>(uuid.bytes[i]));
    text += hex;
  }
  return text;
}

std::string busOf(CUdevice device) {
  char bus[32] = {};
  OK(DRIVER(cuDeviceGetPCIBusId)(bus, sizeof bus, device));
  return bus;
}

/// Initialises the driver and checks the buses of the visible GPUs.
void sees(const std::string& expected) {
  const CUresult status = DRIVER(cuInit)(0);
  if (expected.empty()) {
    EXPECT(CUDA_ERROR_NO_DEVICE, status);
    return;
  }
  OK(status);
  int count = 0;
  std::string seen;
  OK(DRIVER(cuDeviceGetCount)(&count));
  for (int i = 0; i < count; ++i) seen += (i == 0 ? "" : " ") + busOf(i).substr(5, 2);
  CHECK(seen == expected);
}

TEST_CASE("CUDA_VISIBLE_DEVICES selects and orders the GPUs") {
  const std::string secondUuid = "GPU-73696d75-6c61-4064-a970-750000000001";
  inChild(nullptr, [] { sees("17 18 19"); });
  inChild("2,0", [] { sees("19 17"); });
  inChild("1", [] { sees("18"); });
  inChild("0,7,1", [] { sees("17"); });
  inChild("", [] { sees(""); });
  inChild("-1", [] { sees(""); });
  inChild("0,0", [] { sees(""); });
  inChild(secondUuid.c_str(), [] { sees("18"); });
  inChild(secondUuid.substr(0, 12).c_str(), [] { sees(""); });  // the prefix of all three
}

TEST_CASE("GPUs may have different memory, and keep it whichever are visible") {
  const auto memoryOf = [](int device) {
    std::size_t bytes = 0;
    OK(DRIVER(cuDeviceTotalMem_v2)(&bytes, device));
    return bytes >> 20;
  };
  inChild("2,0,1", [&] {
    setenv("NVIDIA_VIRTUAL_SIMULATED_MEMORY", "1GiB,256MiB", 1);
    OK(DRIVER(cuInit)(0));
    CHECK(memoryOf(0) == 256);
    CHECK(memoryOf(1) == 1024);
    CHECK(memoryOf(2) == 256);
  });
}

void* contextOf(CUdevice device) {
  CUcontext context = nullptr;
  OK(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
  OK(DRIVER(cuCtxSetCurrent)(context));
  return context;
}

TEST_CASE("GPUs have memory of their own, and access to peers where it is enabled") {
  inChild(nullptr, [] {
    OK(DRIVER(cuInit)(0));
    CHECK(uuidOf(0) != uuidOf(1));
    CUdevice device = 9;
    OK(DRIVER(cuDeviceGetByPCIBusId)(&device, busOf(1).c_str()));
    CHECK(device == 1);
    const auto second = static_cast<CUcontext>(contextOf(1));
    CUdeviceptr there = 0, here = 0;
    OK(DRIVER(cuMemAlloc_v2)(&there, 64));
    OK(DRIVER(cuMemsetD32_v2)(there, 5, 16));
    const auto first = static_cast<CUcontext>(contextOf(0));
    OK(DRIVER(cuMemAlloc_v2)(&here, 64));
    OK(DRIVER(cuMemcpyPeer)(here, first, there, second, 64));
    unsigned value = 0;
    OK(DRIVER(cuMemcpyDtoH_v2)(&value, here, 4));
    CHECK(value == 5);
    int ordinal = 9, can = 0;
    OK(DRIVER(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    CHECK(ordinal == 1);
    OK(DRIVER(cuDeviceCanAccessPeer)(&can, 0, 1));
    CHECK(can == 1);
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, DRIVER(cuCtxDisablePeerAccess)(second));
    OK(DRIVER(cuCtxEnablePeerAccess)(second, 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, DRIVER(cuCtxEnablePeerAccess)(second, 0));
    const CUfunction store = functionOf(kKernels, "store");
    unsigned stored = 6;
    void* parameters[] = {&there, &stored};
    OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    OK(DRIVER(cuCtxSynchronize)());
    OK(DRIVER(cuMemcpyDtoH_v2)(&value, there, 4));
    CHECK(value == 6);
    OK(DRIVER(cuCtxDisablePeerAccess)(second));
    OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuCtxSynchronize)());
  });
}

TEST_CASE("a GPU reports the compute capability that the environment names") {
  const auto reports = [](const char* text, int major, int minor) {
    inChild(nullptr, [&] {
      if (text != nullptr) setenv("NVIDIA_VIRTUAL_SIMULATED_COMPUTE_CAPABILITY", text, 1);
      OK(DRIVER(cuInit)(0));
      int value = 0, other = 0;
      OK(DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
      CHECK(value == major);
      OK(DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
      CHECK(value == minor);
      OK(DRIVER(cuDeviceComputeCapability)(&value, &other, 0));
      CHECK(value == major);
      CHECK(other == minor);
    });
  };
  reports(nullptr, 9, 0);
  reports("7.5", 7, 5);
  reports("12.0", 12, 0);
  for (const char* wrong : {"", "7", "x", "0.5", "8.0x"}) reports(wrong, 9, 0);
}

TEST_CASE("memory is refused once the GPU has none left") {
  inChild(nullptr, [] {
    OK(DRIVER(cuInit)(0));
    contextOf(0);
    std::size_t free = 0, total = 0;
    OK(DRIVER(cuMemGetInfo_v2)(&free, &total));
    CHECK(total == std::size_t{256} << 20);
    CUdeviceptr p = 0, q = 0;
    OK(DRIVER(cuMemAlloc_v2)(&p, free));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, DRIVER(cuMemAlloc_v2)(&q, 1));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, DRIVER(cuMemAllocAsync)(&q, 1, nullptr));
    OK(DRIVER(cuMemFree_v2)(p));
    OK(DRIVER(cuMemAlloc_v2)(&q, 1));
  });
}

}  // namespace
