// The library as a program uses it, with a page that the test writes.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "nvml/abi.h"
#include "nvml/test/place.h"
#include "test/unit/program.h"

using namespace nvml;

extern "C" {
Return nvmlInit_v2();
Return nvmlDeviceGetCount_v2(unsigned*);
Return nvmlDeviceGetHandleByUUID(const char*, Device*);
Return nvmlDeviceGetHandleByUUIDV(const UuidV1*, Device*);
Return nvmlDeviceGetGpuFabricInfoV(Device, void*);
Return nvmlDeviceGetHandleByPciBusId_v2(const char*, Device*);
Return nvmlDeviceGetName(Device, char*, unsigned);
Return nvmlDeviceGetMemoryInfo(Device, Memory*);
Return nvmlDeviceGetMemoryInfo_v2(Device, MemoryV2*);
Return nvmlDeviceGetUtilizationRates(Device, Utilization*);
Return nvmlDeviceGetClockInfo(Device, unsigned, unsigned*);
Return nvmlDeviceGetEccMode(Device, unsigned*, unsigned*);
Return nvmlDeviceGetSerial(Device, char*, unsigned);
Return nvmlDeviceGetComputeRunningProcesses(Device, unsigned*, ProcessInfoV1*);
Return nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned*, ProcessInfo*);
Return nvmlDeviceGetFieldValues(Device, int, FieldValue*);
Return nvmlDeviceSetMigMode(Device, unsigned, Return*);
Return nvmlSystemGetDriverVersion(char*, unsigned);
Return nvmlSystemGetProcessName(unsigned, char*, unsigned);
Return nvmlInternalGetExportTable(const void**, const unsigned char*);
}

namespace {

const std::string kGpu =
    "system nvmlSystemGetDriverVersion 0 3538302e31\ngpu GPU-0001\nmemory 1000 100\nbusy 42\n"
    "process 7 60 40\nprocess 8 40 2\nanswer nvmlDeviceGetName 0 4e616d65\n"
    "answer nvmlDeviceGetClockInfo/1 0 59010000\nanswer nvmlDeviceGetEccMode 0 0100000000000000\n"
    "answer nvmlDeviceGetSerial 999 \nanswer nvmlDeviceGetFieldValues/82/0 0 "
    "010000002900000000000000\n";

}  // namespace

TEST_CASE("before nvmlInit nothing is answered; without gpu-proxy the driver is not loaded") {
  const Place place;
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == kUninitialized);
  CHECK(nvmlDeviceSetMigMode(nullptr, 0, nullptr) == kUninitialized);
  CHECK(nvmlShutdown() == kUninitialized);
  CHECK(nvmlInit_v2() == kDriverNotLoaded);
  place.publish("");
  CHECK(nvmlInit_v2() == kDriverNotLoaded);
}

TEST_CASE("the slice is the device") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == kSuccess);
  CHECK(count == 1);
  Device device = deviceOf(0);
  Device same = nullptr;
  CHECK(nvmlDeviceGetHandleByUUID("gpu-0001", &same) == kSuccess);
  CHECK(same == device);
  CHECK(nvmlDeviceGetHandleByUUID("GPU-0002", &same) == kNotFound);
  Memory memory{};
  CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == kSuccess);
  CHECK(memory.total == 1000);
  CHECK(memory.free == 900);
  MemoryV2 second{};
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == kArgumentVersionMismatch);
  second.version = versionOf<MemoryV2>();
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == kSuccess);
  CHECK(second.used == 100);
  Utilization rates{};
  CHECK(nvmlDeviceGetUtilizationRates(device, &rates) == kSuccess);
  CHECK(rates.gpu == 42);
}

TEST_CASE("answers of the GPU are passed on, with their errors") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = deviceOf(0);
  char text[8] = {};
  CHECK(nvmlDeviceGetName(device, text, sizeof text) == kSuccess);
  CHECK(std::string(text) == "Name");
  CHECK(nvmlDeviceGetName(device, text, 4) == kInsufficientSize);
  CHECK(nvmlDeviceGetName(device, nullptr, 4) == kInvalidArgument);
  CHECK(nvmlDeviceGetName(nullptr, text, sizeof text) == kInvalidArgument);
  CHECK(nvmlDeviceGetSerial(device, text, sizeof text) == kUnknown);
  unsigned clock = 0;
  CHECK(nvmlDeviceGetClockInfo(device, 1, &clock) == kSuccess);
  CHECK(clock == 345);
  CHECK(nvmlDeviceGetClockInfo(device, 9, &clock) == kNotSupported);
  unsigned current = 0, pending = 9;
  CHECK(nvmlDeviceGetEccMode(device, &current, &pending) == kSuccess);
  CHECK(current == 1);
  CHECK(pending == 0);
  FieldValue fields[3] = {{.fieldId = 82}, {.fieldId = 138}, {.fieldId = 82, .scopeId = 1}};
  CHECK(nvmlDeviceGetFieldValues(device, 3, fields) == kSuccess);
  CHECK(fields[0].value == 41);
  CHECK(fields[1].status == kNotSupported);
  CHECK(fields[2].status == kNotSupported);
  CHECK(nvmlSystemGetDriverVersion(text, sizeof text) == kSuccess);
  CHECK(std::string(text) == "580.1");
}

TEST_CASE("processes are those of the allocation, in both layouts") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = deviceOf(0);
  unsigned count = 0;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr) == kInsufficientSize);
  CHECK(count == 2);
  ProcessInfo infos[2] = {};
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) == kSuccess);
  CHECK(infos[1].pid == 8);
  CHECK(infos[1].usedGpuMemory == 40);
  CHECK(infos[1].gpuInstanceId == kNoInstance);
  ProcessInfoV1 old[2] = {};
  CHECK(nvmlDeviceGetComputeRunningProcesses(device, &count, old) == kSuccess);
  CHECK(old[1].usedGpuMemory == 40);
  char name[64] = {};
  CHECK(nvmlSystemGetProcessName(static_cast<unsigned>(getpid()), name, sizeof name) == kSuccess);
  CHECK(std::string(name).find("nvml_test") != std::string::npos);
  CHECK(nvmlSystemGetProcessName(0, name, sizeof name) == kNotFound);
}

TEST_CASE("what changes the device is not permitted, the rest is not supported") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  CHECK(nvmlDeviceSetMigMode(deviceOf(0), 1, nullptr) == kNoPermission);
  const void* table = nullptr;
  const unsigned char unknown[16] = {};
  CHECK(nvmlInternalGetExportTable(&table, unknown) == kNotFound);
}

TEST_CASE("a device is found by its PCI address in all its forms") {
  const Place place;
  PciInfo info{};
  std::strcpy(info.busId, "00000000:17:00.0");
  place.publish(kGpu + "answer nvmlDeviceGetPciInfo_v3 0 " + hexOf(info) + "\n");
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = nullptr;
  for (const char* bus : {"00000000:17:00.0", "0000:17:00.0", "0:17:00.0"})
    CHECK(nvmlDeviceGetHandleByPciBusId_v2(bus, &device) == kSuccess);
  for (const char* bus : {"0001:17:00.0", "0000:18:00.0", "", ":"})
    CHECK(nvmlDeviceGetHandleByPciBusId_v2(bus, &device) == kNotFound);
}

TEST_CASE("nvmlInit waits for gpu-proxy, and later pages are seen") {
  const Place place;
  place.publish("pending\n");
  std::thread proxy([&] { place.publish(kGpu); });
  CHECK(nvmlInit_v2() == kSuccess);
  proxy.join();
  place.publish("gpu GPU-0001\nmemory 1000 200\n");
  Memory memory{};
  while (memory.used != 200) REQUIRE(nvmlDeviceGetMemoryInfo(deviceOf(0), &memory) == kSuccess);
}

TEST_CASE("fabric information comes in the struct whose version the caller names") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  FabricInfoV3 info{.version = versionOf<FabricInfoV2>(), .healthMask = 7, .healthSummary = 9};
  CHECK(nvmlDeviceGetGpuFabricInfoV(deviceOf(0), &info) == kSuccess);
  CHECK(info.healthMask == 0);
  CHECK(info.healthSummary == 9);
  info.version = versionOf<FabricInfoV3>();
  CHECK(nvmlDeviceGetGpuFabricInfoV(deviceOf(0), &info) == kSuccess);
  CHECK(info.version == versionOf<FabricInfoV3>());
  CHECK(info.healthSummary == 0);
  for (const unsigned version : {0u, 2u << 24, 3u << 24, versionOf<FabricInfoV3>() - 4}) {
    info.version = version;
    CHECK(nvmlDeviceGetGpuFabricInfoV(deviceOf(0), &info) == kArgumentVersionMismatch);
  }
}

TEST_CASE("a UUID in a struct may lack its terminating zero") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  UuidV1 uuid{.version = versionOf<UuidV1>(), .type = 1, .text = {}};
  std::memset(uuid.text, 'x', sizeof uuid.text);
  Device device = nullptr;
  CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &device) == kNotFound);
  std::strcpy(uuid.text, "GPU-0001");
  CHECK(nvmlDeviceGetHandleByUUIDV(&uuid, &device) == kSuccess);
}

TEST_CASE("values that are minutes old are not told; the devices still are") {
  const Place place;
  place.publish(kGpu);
  place.age(std::chrono::minutes(10));
  REQUIRE(nvmlInit_v2() == kSuccess);
  unsigned count = 0;
  CHECK(nvmlDeviceGetCount_v2(&count) == kSuccess);
  CHECK(count == 1);
  Memory memory{};
  CHECK(nvmlDeviceGetMemoryInfo(deviceOf(0), &memory) == kUnknown);
  place.age(std::chrono::minutes(1));
  Return status = kUnknown;
  while (status == kUnknown) status = nvmlDeviceGetMemoryInfo(deviceOf(0), &memory);
  CHECK(status == kSuccess);
}

TEST_CASE("a process may fork while another thread asks") {
  const Place place;
  place.publish(kGpu);
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = deviceOf(0);
  std::atomic<bool> ended = false;
  std::thread asking([&] {
    Memory memory{};
    while (!ended) nvmlDeviceGetMemoryInfo(device, &memory);
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      Memory memory{};
      _exit(nvmlDeviceGetMemoryInfo(device, &memory));
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  ended = true;
  asking.join();
}
