// The driver's version in a page that gpu-proxy writes.
#include "interposer/entry/driver_version.h"

#include <doctest/doctest.h>

#include <string>

namespace {

std::string page(const std::string& rest) {
  return "nvidia-virtual-gpus 1\nsystem nvmlSystemGetDriverVersion 0 3535\n" + rest;
}

const std::string kCall = "system nvmlSystemGetCudaDriverVersion_v2 ";

}  // namespace

TEST_CASE("a page tells the driver's version") {
  CHECK(interposer::versionInPage(page(kCall + "0 082f0000\ngpu GPU-1\n")) == 12040);
  CHECK(interposer::versionInPage(page(kCall + "0 c8320000\n")) == 13000);
}

TEST_CASE("a page without a version, or with a damaged one, tells none") {
  for (const char* rest : {"0 082f\n", "0 08zz0000\n", "0 00000000\n", "0 ffffffff\n", "3 \n", ""})
    CHECK_FALSE(interposer::versionInPage(page(kCall + rest)).has_value());
  CHECK_FALSE(interposer::versionInPage(page("pending\n")).has_value());
  CHECK_FALSE(interposer::versionInPage("").has_value());
}
