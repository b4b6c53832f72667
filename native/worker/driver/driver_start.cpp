#include "native/worker/driver/driver_start.h"

#include <dlfcn.h>

#include <algorithm>

#include "native/worker/driver/devices.h"
#include "native/worker/driver/kernel_calls.h"

namespace worker {

namespace {

/// CUDA 12.4 (driver 550): the first with cuFuncGetParamInfo and cuKernelGetParamInfo.
constexpr int kOldestDriver = 12040;

bool fail(DriverStart& start, CUresult status, const std::string& sentence) {
  start.status = status;
  start.sentence = sentence;
  return false;
}

bool open(const std::string& path, Driver& driver, DriverStart& start) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(start, CUDA_ERROR_NO_DEVICE,
                "the CUDA driver " + path + " cannot be loaded: " + dlerror());
  if (!load(library, driver))
    return fail(start, CUDA_ERROR_NO_DEVICE, path + " is not a CUDA driver: functions are missing");
  // Drivers before CUDA 12.8 have only the first version of this function.
  if (driver.cuEventElapsedTime_v2 == nullptr)
    driver.cuEventElapsedTime_v2 = driver.cuEventElapsedTime;
  return true;
}

bool initialise(const std::string& path, const Driver& driver, DriverStart& start) {
  const std::uint64_t calls = kernelCalls;
  const CUresult status = driver.cuInit(0);
  kernelCallsCounted = kernelCalls != calls;
  start.hidden = status == CUDA_ERROR_NO_DEVICE;
  return status == CUDA_SUCCESS ||
         fail(start, status,
              "the CUDA driver " + path + " does not start: " + nameOf(driver, status));
}

bool checkVersion(const Driver& driver, DriverStart& start) {
  int version = 0;
  driver.cuDriverGetVersion(&version);
  start.version = std::min(version, kNewestApi);
  return version >= kOldestDriver ||
         fail(start, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
              "the host's CUDA driver is too old: it supports CUDA " +
                  std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) +
                  ", and 12.4 (driver 550) is needed; update the driver of the node");
}

bool describe(const std::string& path, const Driver& driver, DriverStart& start) {
  CUresult status = CUDA_SUCCESS;
  start.devices = describeDevices(driver, status);
  if (status != CUDA_SUCCESS)
    return fail(start, status,
                "the CUDA driver does not describe its devices: " + nameOf(driver, status));
  return !start.devices.empty() ||
         fail(start, CUDA_ERROR_NO_DEVICE, "the CUDA driver " + path + " has no device");
}

/// Asks the driver, because the client's copy of this attribute is always 0.
bool checkPageableAccess(const Driver& driver, DriverStart& start) {
  for (std::size_t i = 0; i < start.devices.size(); ++i) {
    int reachable = 0;
    driver.cuDeviceGetAttribute(&reachable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                                static_cast<CUdevice>(i));
    if (reachable == 0) continue;
    return fail(start, CUDA_ERROR_NOT_PERMITTED,
                "the host lets kernels reach all memory of a process (HMM), so tenants could not "
                "be kept apart; load nvidia-uvm with "
                "uvm_disable_hmm=1");
  }
  return true;
}

}  // namespace

DriverStart startDriver(const std::string& path, Driver& driver) {
  DriverStart start;
  [[maybe_unused]] const bool up = open(path, driver, start) && initialise(path, driver, start) &&
                                   checkVersion(driver, start) && describe(path, driver, start) &&
                                   checkPageableAccess(driver, start);
  return start;
}

std::string nameOf(const Driver& driver, CUresult result) {
  const char* text = nullptr;
  return driver.cuGetErrorName(result, &text) == CUDA_SUCCESS ? text : std::to_string(result);
}

}  // namespace worker
