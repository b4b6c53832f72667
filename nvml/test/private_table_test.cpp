// What nvidia-smi finds by its private table.
#include <string>

#include "nvml/abi.h"
#include "nvml/test/place.h"
#include "test/unit/program.h"

using namespace nvml;

extern "C" {
Return nvmlInit_v2();
Return nvmlInternalGetExportTable(const void**, const unsigned char*);
}

namespace {

constexpr unsigned char kTable[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                      0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
using Uses = Return (*)(Device, Wide, unsigned*, unsigned*, unsigned (*)[122]);

Device start(const Place& place, const char* driverVersionHex) {
  place.publish(std::string("system nvmlSystemGetDriverVersion 0 ") + driverVersionHex +
                "\ngpu GPU-0001\nmemory 1000 100\nprocess 7 60 40\nprocess 8 40 2\n");
  REQUIRE(nvmlInit_v2() == kSuccess);
  return deviceOf(0);
}

Uses usesOfTable() {
  const void* table = nullptr;
  REQUIRE(nvmlInternalGetExportTable(&table, kTable) == kSuccess);
  return static_cast<const Uses*>(table)[145];
}

}  // namespace

TEST_CASE("pmon gets a sample for each process, scaled by their number") {
  const Place place;
  const Device device = start(place, "3538302e31");  // 580.1
  unsigned samples[2][122] = {}, unused = 0, count = 1;
  CHECK(usesOfTable()(device, 0, &unused, &count, samples) == kInsufficientSize);
  CHECK(count == 2);
  CHECK(usesOfTable()(device, 0, &unused, &count, samples) == kSuccess);
  CHECK(samples[0][2] == 80);
  CHECK(samples[0][4] == 7);
  CHECK(samples[1][2] == 4);
  CHECK(samples[1][4] == 8);
  CHECK(usesOfTable()(nullptr, 0, &unused, &count, samples) == kInvalidArgument);
}

TEST_CASE("nvidia-smi of an old driver has other samples") {
  const Place place;
  const Device device = start(place, "3533352e31");  // 535.1
  unsigned samples[2][122] = {}, unused = 0, count = 2;
  CHECK(usesOfTable()(device, 0, &unused, &count, samples) == kNotSupported);
}
