// Code images that travel inside the frame, from a hostile client too.
#include <dlfcn.h>

#include <string>
#include <vector>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"
#include "wire/image.h"

namespace {

using worker::test::kMiB;

const std::string kText =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";

struct Fixture {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  worker::Session session{-1, report, quota, figures, output, {}};
  worker::test::Frames frames{session};
  std::uint64_t context = 0;

  Fixture() {
    const std::string path = worker::test::makeQuotaFile(1024 * kMiB);
    REQUIRE(quota.open(path, 0, 1024 * kMiB).empty());
    unlink(path.c_str());
    const char* driver = unit::argument(0, "the path of the simulated driver");
    REQUIRE(worker::load(dlopen(driver, RTLD_NOW | RTLD_LOCAL), session.driver));
    REQUIRE(session.driver.cuInit(0) == CUDA_SUCCESS);
    const auto made = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    REQUIRE(made.status == CUDA_SUCCESS);
    context = made.handle;
  }
  ~Fixture() { CHECK(frames.call(CallNumber::cuCtxDestroy_v2, context).status == CUDA_SUCCESS); }

  /// `lengths`: what the frame says about its parts; `content`: what follows.
  worker::test::Reply load(const std::vector<std::uint64_t>& lengths, const std::string& content) {
    return frames.send(CallNumber::cuModuleLoadDataEx, [&](wire::Encoder& frame) {
      frame.put<std::uint64_t>(0);  // no memory file
      frame.put<std::uint64_t>(lengths.size());
      for (const std::uint64_t length : lengths) frame.put(length);
      if (std::byte* to = frame.space(content.size()))
        std::memcpy(to, content.data(), content.size());
      frame.put<std::uint64_t>(0);  // options
    });
  }
};

std::string terminated(const std::string& text) { return text + '\0'; }

}  // namespace

TEST_CASE("an image inside the frame loads") {
  Fixture test;
  const std::string image = terminated(kText);
  const auto loaded = test.load({image.size()}, image);
  REQUIRE(loaded.status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuModuleUnload, loaded.handle).status == CUDA_SUCCESS);
}

TEST_CASE("an image inside the frame ends where the frame says") {
  Fixture test;
  const std::string image = terminated(kText);
  CHECK(test.load({image.size() - 1}, image).status == CUDA_ERROR_INVALID_IMAGE);
  const std::string aligned = image + std::string((8 - image.size() % 8) % 8, '\0');
  CHECK(test.load({image.size(), image.size()}, aligned + aligned).status ==
        CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("a length that exceeds the frame, or the limit, ends the session") {
  const std::string image = terminated(kText);
  for (const std::uint64_t length :
       {std::uint64_t{4096}, std::uint64_t{wire::kInlineImageBytes} + 1, ~std::uint64_t{0},
        ~std::uint64_t{0} - 7}) {
    Fixture test;
    CHECK(test.load({length}, image).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
  }
  Fixture test;
  CHECK(test.load({}, image).status == CUDA_ERROR_DEVICE_UNAVAILABLE);
  CHECK(test.load({0}, "").status == CUDA_ERROR_INVALID_IMAGE);
}
