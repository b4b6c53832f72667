// Loads the driver and checks that it can serve tenants.
#pragma once

#include <string>
#include <vector>

#include "driver.h"
#include "wire/hello.h"

namespace worker {

/// The newest version of the API that programs get.
inline constexpr int kNewestApi = 13000;

/// A loaded driver, or the reason why there is none.
struct DriverStart {
  CUresult status = CUDA_SUCCESS;  ///< what the program's cuInit answers
  std::string sentence;            ///< when that is an error
  bool hidden =
      false;  ///< the driver is there, and has no GPU among those that the environment shows
  int version =
      0;  ///< of the API, as cuDriverGetVersion numbers it; never above the one that we speak
  std::vector<wire::DeviceInfo> devices;
};

/// dlopen and cuInit of the driver at `path`, with the environment as it is.
DriverStart startDriver(const std::string& path, Driver& driver);

/// CUDA_ERROR_…, or the number of a result that the driver cannot name.
std::string nameOf(const Driver& driver, CUresult result);

}  // namespace worker
