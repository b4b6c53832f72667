// Asynchronous notifications of a device. Their one kind, that the process holds more than its
// budget of memory, never happens: the worker refuses what exceeds the quota.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "interposer/session/call.h"
#include "interposer/session/session.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

struct Registrations {
  std::mutex mutex;
  std::vector<std::pair<CUdevice, CUasyncCallbackHandle>> all;
  std::uint64_t last = 0;
};

Registrations& registrations() {
  static Registrations* const instance = new Registrations;
  return *instance;
}

CUresult checkDevice(CUdevice device) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const auto count = Session::current()->devices().size();
  return device >= 0 && static_cast<std::size_t>(device) < count ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void*,
                                           CUasyncCallbackHandle* callback) {
  if (const CUresult status = checkDevice(device); status != CUDA_SUCCESS) return status;
  if (callbackFunc == nullptr || callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(registrations().mutex);
  *callback = handle<CUasyncCallbackHandle>(++registrations().last);
  registrations().all.emplace_back(device, *callback);
  return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback) {
  if (const CUresult status = checkDevice(device); status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(registrations().mutex);
  return std::erase(registrations().all, std::pair(device, callback)) != 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace interposer
