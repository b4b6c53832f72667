// NVLink, and what two GPUs of a container are to each other, as NCCL and vLLM ask.
#include <cstring>
#include <string>

#include "nvml/abi.h"
#include "nvml/test/place.h"
#include "test/unit/program.h"

using namespace nvml;

extern "C" {
Return nvmlInit_v2();
Return nvmlDeviceGetNvLinkState(Device, unsigned, unsigned*);
Return nvmlDeviceGetNvLinkVersion(Device, unsigned, unsigned*);
Return nvmlDeviceGetNvLinkCapability(Device, unsigned, unsigned, unsigned*);
Return nvmlDeviceGetNvLinkErrorCounter(Device, unsigned, unsigned, Wide*);
Return nvmlDeviceGetNvLinkRemotePciInfo(Device, unsigned, PciInfo*);
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, PciInfo*);
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, unsigned*);
Return nvmlDeviceGetP2PStatus(Device, Device, unsigned, unsigned*);
Return nvmlDeviceGetFieldValues(Device, int, FieldValue*);
}

namespace {

constexpr unsigned kLinkCount = 91;   ///< NVML_FI_DEV_NVLINK_LINK_COUNT
constexpr unsigned kLinkState = 165;  ///< NVML_FI_DEV_NVLINK_GET_STATE

}  // namespace

TEST_CASE("a link of the GPU is answered by its number, in the old struct too") {
  const Place place;
  PciInfo remote{};
  std::strcpy(remote.busIdLegacy, "0000:05:00.0");
  std::strcpy(remote.busId, "00000000:05:00.0");
  remote.bus = 5;
  place.publish(
      "gpu GPU-0001\nanswer nvmlDeviceGetNvLinkState/17 0 01000000\n"
      "answer nvmlDeviceGetNvLinkVersion/17 0 06000000\n"
      "answer nvmlDeviceGetNvLinkCapability/17/0 0 01000000\n"
      "answer nvmlDeviceGetNvLinkRemoteDeviceType/17 0 02000000\n"
      "answer nvmlDeviceGetFieldValues/165/17 0 010000000100000000000000\n"
      "answer nvmlDeviceGetNvLinkRemotePciInfo_v2/17 0 " +
      hexOf(remote) + "\n");
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = deviceOf(0);
  unsigned state = 0, version = 0, capability = 0, type = 0;
  CHECK(nvmlDeviceGetNvLinkState(device, 17, &state) == kSuccess);
  CHECK(state == 1);
  CHECK(nvmlDeviceGetNvLinkState(device, 16, &state) == kNotSupported);
  CHECK(nvmlDeviceGetNvLinkVersion(device, 17, &version) == kSuccess);
  CHECK(version == 6);
  CHECK(nvmlDeviceGetNvLinkCapability(device, 17, 0, &capability) == kSuccess);
  CHECK(capability == 1);
  CHECK(nvmlDeviceGetNvLinkRemoteDeviceType(device, 17, &type) == kSuccess);
  CHECK(type == 2);
  FieldValue field{.fieldId = kLinkState, .scopeId = 17};
  CHECK(nvmlDeviceGetFieldValues(device, 1, &field) == kSuccess);
  CHECK(field.value == 1);
  PciInfo info{};
  CHECK(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 17, &info) == kSuccess);
  CHECK(std::string(info.busId) == "00000000:05:00.0");
  std::memset(static_cast<void*>(&info), 'x', sizeof info);
  CHECK(nvmlDeviceGetNvLinkRemotePciInfo(device, 17, &info) == kSuccess);
  CHECK(std::string(info.busIdLegacy) == "0000:05:00.0");
  CHECK(info.bus == 5);
  CHECK(info.busId[0] == 'x');
}

TEST_CASE("a GPU without NVLink has none, and traffic is never told") {
  const Place place;
  place.publish("gpu GPU-0001\n");
  REQUIRE(nvmlInit_v2() == kSuccess);
  Device device = deviceOf(0);
  unsigned number = 0;
  Wide wide = 0;
  PciInfo info{};
  CHECK(nvmlDeviceGetNvLinkState(device, 0, &number) == kNotSupported);
  CHECK(nvmlDeviceGetNvLinkRemotePciInfo(device, 0, &info) == kNotSupported);
  CHECK(nvmlDeviceGetNvLinkErrorCounter(device, 0, 0, &wide) == kNotSupported);
  FieldValue links{.fieldId = kLinkCount};
  CHECK(nvmlDeviceGetFieldValues(device, 1, &links) == kSuccess);
  CHECK(links.status == kNotSupported);
}

TEST_CASE("two GPUs reach each other as the driver says") {
  const Place place;
  place.publish(
      "gpu GPU-0001\nanswer nvmlDeviceGetP2PStatus/GPU-0002/2 0 00000000\n"
      "gpu GPU-0002\nanswer nvmlDeviceGetP2PStatus/GPU-0001/2 0 05000000\n");
  REQUIRE(nvmlInit_v2() == kSuccess);
  unsigned status = 9;
  CHECK(nvmlDeviceGetP2PStatus(deviceOf(0), deviceOf(1), 2, &status) == kSuccess);
  CHECK(status == 0);
  CHECK(nvmlDeviceGetP2PStatus(deviceOf(1), deviceOf(0), 2, &status) == kSuccess);
  CHECK(status == 5);
  CHECK(nvmlDeviceGetP2PStatus(deviceOf(0), deviceOf(1), 3, &status) == kNotSupported);
  CHECK(nvmlDeviceGetP2PStatus(deviceOf(0), nullptr, 2, &status) == kInvalidArgument);
}
