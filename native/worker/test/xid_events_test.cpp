#include "native/worker/gpus/xid_events.h"

#include "test/unit/program.h"

TEST_CASE("Xids are counted by device and number, and told once") {
  void* library = dlopen(unit::argument(0, "the path of the NVML double"), RTLD_NOW);
  worker::nvml::Return (*handle)(unsigned, worker::nvml::Device*) = nullptr;
  CHECK(worker::nvml::find(library, "nvmlDeviceGetHandleByIndex_v2", handle));
  std::vector<worker::nvml::Device> devices(2);
  for (unsigned i = 0; i < 2; ++i) CHECK(handle(i, &devices[i]) == worker::nvml::kSuccess);
  worker::XidEvents events(library, devices);
  // On a busy machine, the time of one wait may be over before all three have been read.
  for (int i = 0; i < 20; ++i) events.wait(std::chrono::milliseconds(1));
  const auto texts = [&](worker::nvml::Device device) {
    std::string all;
    for (const worker::JsonObject& object : events.take(device)) all += object.text();
    return all;
  };
  CHECK(texts(devices[1]).empty());
  CHECK(texts(devices[0]) == R"({"xid":31,"count":2}{"xid":79,"count":1})");
  CHECK(texts(devices[0]).empty());
}

TEST_CASE("a library without events tells no Xids") {
  worker::XidEvents events(dlopen("libc.so.6", RTLD_NOW), {});
  events.wait(std::chrono::milliseconds(1));
  CHECK(events.take(nullptr).empty());
}
