#include "native/worker/gpus/xid_events.h"

#include <algorithm>
#include <thread>

#include "native/worker/reports/log.h"

namespace worker {

using namespace nvml;

XidEvents::XidEvents(void* library, const std::vector<Device>& devices) {
  Return (*create)(void** set) = nullptr;
  Return (*watch)(Device, Wide types, void* set) = nullptr;
  Wait wait = nullptr;
  if (!find(library, "nvmlEventSetCreate", create) ||
      !find(library, "nvmlDeviceRegisterEvents", watch) ||
      !find(library, "nvmlEventSetWait_v2", wait) || create(&set_) != kSuccess) {
    log("NVML tells no Xids: its event sets are missing or cannot be created");
    return;
  }
  std::size_t watched = 0;
  for (const Device device : devices) {
    const Return status = watch(device, kXidEvent, set_);
    if (status == kSuccess)
      ++watched;
    else
      log("NVML does not tell the Xids of a GPU: error %d", status);
  }
  if (watched > 0) wait_ = wait;
}

void XidEvents::wait(std::chrono::milliseconds time) {
  using namespace std::chrono;
  const auto end = steady_clock::now() + time;
  for (auto now = steady_clock::now(); now < end; now = steady_clock::now()) {
    EventData event{};
    const auto left = ceil<milliseconds>(end - now).count();
    const Return status =
        wait_ == nullptr ? kNotSupported : wait_(set_, &event, static_cast<unsigned>(left));
    if (status == kSuccess && event.type == kXidEvent)
      ++collected_[event.device][event.data];
    else if (status != kSuccess)
      std::this_thread::sleep_until(end);  // a wait fails at once while a GPU is lost
  }
}

std::vector<JsonObject> XidEvents::take(Device device) {
  std::vector<JsonObject> objects;
  for (const auto& [xid, count] : collected_[device])
    objects.push_back(JsonObject().add("xid", xid).add("count", count));
  collected_.erase(device);
  return objects;
}

}  // namespace worker
