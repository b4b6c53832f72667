// Links of a hostile client: inputs that lie about their size, no bound on what is kept, and the
// charge of what was linked.
#include <elf.h>

#include <cstring>
#include <utility>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::test::kMiB;

const std::string kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";
const std::string kUser = kHead +
                          ".extern .global .align 4 .b8 large[33554432];\n"
                          ".visible .entry touch() { .reg .u64 %rd<2>; mov.u64 %rd1, large;"
                          " st.global.u32 [%rd1], 1; ret; }\n";
const std::string kGiver = kHead + ".visible .global .align 4 .b8 large[33554432];\n";

struct Fixture : worker::test::SimulatedSession {
  std::uint64_t next = 1;

  Fixture() : SimulatedSession(1024 * kMiB) {}

  std::uint64_t create() {
    const auto made = frames.call(CallNumber::cuLinkCreate_v2, std::uint64_t{0});
    REQUIRE(made.status == CUDA_SUCCESS);
    return made.handle;
  }
  /// Adds an input of which the frame says that it has so many bytes.
  CUresult add(std::uint64_t link, CUjitInputType type, const std::string& content,
               std::uint64_t bytes) {
    const std::uint64_t id = next++;
    session.shared.put(id, worker::test::memoryFile(content, (content.size() + 7) / 8 * 8,
                                                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
    return frames
        .send(CallNumber::cuLinkAddData_v2,
              [&](wire::Encoder& frame) {
                frame.put(link);
                frame.put(type);
                frame.put(id);
                frame.put(bytes);
                frame.putBytes("input", 6);
                frame.put<std::uint64_t>(0);  // options
              })
        .status;
  }
  CUresult addText(std::uint64_t link, const std::string& text) {
    return add(link, CU_JIT_INPUT_PTX, text + '\0', text.size() + 1);
  }
  worker::test::Reply complete(std::uint64_t link) {
    return frames.call(CallNumber::cuLinkComplete, link);
  }
  CUresult destroy(std::uint64_t link) {
    return frames.call(CallNumber::cuLinkDestroy, link).status;
  }
};

/// The linked image, from the driver's state: what a client reads in pieces.
std::string imageOf(Fixture& test) {
  CUlinkState state = nullptr;
  void* code = nullptr;
  std::size_t bytes = 0;
  const auto& driver = test.session.driver;
  const auto text = [&](const std::string& ptx) {
    return driver.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()),
                                   ptx.size() + 1, "", 0, nullptr, nullptr);
  };
  REQUIRE(driver.cuLinkCreate_v2(0, nullptr, nullptr, &state) == CUDA_SUCCESS);
  REQUIRE(text(kUser) == CUDA_SUCCESS);
  REQUIRE(text(kGiver) == CUDA_SUCCESS);
  REQUIRE(driver.cuLinkComplete(state, &code, &bytes) == CUDA_SUCCESS);
  std::string image(static_cast<const char*>(code), bytes);
  CHECK(driver.cuLinkDestroy(state) == CUDA_SUCCESS);
  return image;
}

TEST_CASE("inputs that lie or are no code are refused") {
  Fixture test;
  const std::uint64_t link = test.create();
  const std::string garbage(256, 'x');
  CHECK(test.add(link, CU_JIT_INPUT_PTX, kUser, kUser.size() * 1000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.add(link, CU_JIT_INPUT_PTX, kUser, 0) == CUDA_ERROR_INVALID_VALUE);
  for (const auto type : {CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_OBJECT,
                          CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_NVVM})
    CHECK(test.add(link, type, garbage, garbage.size()) != CUDA_SUCCESS);
  CHECK(test.add(link, static_cast<CUjitInputType>(77), garbage, 8) == CUDA_ERROR_INVALID_VALUE);
  const std::string archive =
      "!<arch>\nmember/         0           0     0     644     99999999  `\n\177ELF";
  CHECK(test.add(link, CU_JIT_INPUT_LIBRARY, archive, archive.size()) == CUDA_ERROR_INVALID_IMAGE);
  std::string elf = imageOf(test);
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  header.e_shoff = ~std::uint64_t{0} - 100;
  std::memcpy(elf.data(), &header, sizeof header);
  CHECK(test.add(link, CU_JIT_INPUT_OBJECT, elf, elf.size()) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.add(link, CU_JIT_INPUT_CUBIN, elf, elf.size()) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(test.addText(link + 2, kUser) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(test.addText(test.context, kUser) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(test.destroy(link) == CUDA_SUCCESS);
  CHECK(test.destroy(link) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the inputs of a session are bounded until their links are destroyed") {
  Fixture test;
  const std::uint64_t link = test.create(), other = test.create();
  CHECK(test.addText(link, kGiver) == CUDA_SUCCESS);
  const std::uint64_t kept = test.session.linkInputBytes;
  CHECK(kept == kGiver.size() + 1);
  test.session.linkInputBytes += std::uint64_t{1} << 30;
  CHECK(test.addText(other, kGiver) == CUDA_ERROR_OUT_OF_MEMORY);
  test.session.linkInputBytes -= std::uint64_t{1} << 30;
  CHECK(test.destroy(link) == CUDA_SUCCESS);
  CHECK(test.session.linkInputBytes == 0);
  CHECK(test.destroy(other) == CUDA_SUCCESS);
}

TEST_CASE("only linked code is read") {
  Fixture test;
  const std::uint64_t link = test.create();
  const auto read = [&](std::uint64_t offset) {
    return test.frames.call(CallNumber::readLinkedCode, link, offset).status;
  };
  CHECK(read(0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.addText(link, kUser) == CUDA_SUCCESS);
  CHECK(test.complete(link).status != CUDA_SUCCESS);  // the variable is not defined
  CHECK(read(0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.addText(link, kGiver) == CUDA_SUCCESS);
  const auto completed = test.complete(link);
  CHECK(completed.status == CUDA_SUCCESS);
  CHECK(read(0) == CUDA_SUCCESS);
  CHECK(read(completed.handle) == CUDA_SUCCESS);  // nothing is left
  CHECK(read(completed.handle + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(~std::uint64_t{0}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.destroy(link) == CUDA_SUCCESS);
  CHECK(read(0) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the variables of linked code are charged when it is loaded") {
  Fixture test;
  const std::string image = imageOf(test);
  const std::uint64_t before = test.quota.used();
  const auto module = worker::test::load(test.frames, test.session, CallNumber::cuModuleLoadDataEx,
                                         99, image.substr(0, image.size() / 2));
  CHECK(module.status != CUDA_SUCCESS);
  std::uint64_t id = 100;
  test.session.shared.put(id, worker::test::memoryFile(image, (image.size() + 7) / 8 * 8,
                                                       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
  const auto loaded = test.frames.send(CallNumber::cuModuleLoadDataEx, [&](wire::Encoder& frame) {
    frame.put(id);
    frame.put<std::uint64_t>(1);
    frame.put<std::uint64_t>(image.size());
    frame.put<std::uint64_t>(0);  // options
  });
  CHECK(loaded.status == CUDA_SUCCESS);
  CHECK(test.quota.used() >= before + 32 * kMiB - 8 * kMiB);
}

worker::test::Reply describe(Fixture& test, const CUdevResource& resource) {
  return test.frames.send(CallNumber::cuDevResourceGenerateDesc, [&](wire::Encoder& frame) {
    frame.putBytes(&resource, sizeof resource);
  });
}

/// A green context of the whole device, and the context that it is converted to.
worker::test::Reply makeGreen(Fixture& test) {
  CUdevResource whole{};
  test.frames.call(CallNumber::cuDeviceGetDevResource, CUdevice{0}, CU_DEV_RESOURCE_TYPE_SM);
  CHECK(test.session.driver.cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM) ==
        CUDA_SUCCESS);
  const auto description = describe(test, whole);
  CHECK(description.status == CUDA_SUCCESS);
  return test.frames.call(CallNumber::cuGreenCtxCreate, description.handle, CUdevice{0},
                          unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
}

// The driver may give the address of a green context that has ended to another context, whose end
// must not refund memory that the primary context holds.
TEST_CASE("memory that was allocated in a green context is charged until the primary one ends") {
  Fixture test;
  const std::uint64_t before = test.quota.used();
  CHECK(test.frames.call(CallNumber::cuDevicePrimaryCtxRetain, CUdevice{0}).status == CUDA_SUCCESS);
  const auto green = makeGreen(test);
  REQUIRE(green.status == CUDA_SUCCESS);
  static CUcontext context = nullptr;
  context =
      static_cast<CUcontext>(test.session.handles.find(wire::HandleKind::context, green.second));
  REQUIRE(context != nullptr);
  test.frames.call(CallNumber::cuCtxSetCurrent, green.second);
  const auto getCurrent = std::exchange(
      test.session.driver.cuCtxGetCurrent,
      [](CUcontext* current) { return *current = context, CUDA_SUCCESS; });  // as a GPU's driver
  CHECK(test.frames.call(CallNumber::cuMemAlloc_v2, 64 * kMiB).status == CUDA_SUCCESS);
  const auto event = test.frames.call(CallNumber::cuEventCreate, 0u);
  test.session.driver.cuCtxGetCurrent = getCurrent;
  test.frames.call(CallNumber::cuCtxSetCurrent, test.context);
  CHECK(test.frames.call(CallNumber::cuGreenCtxDestroy, green.handle).status == CUDA_SUCCESS);
  CUcontext again = context;  // another context, with the same address
  CHECK(test.session.contexts.make(0, &again, [] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
  test.session.contextEnded(again);
  CHECK(test.quota.used() == before + 64 * kMiB);
  CHECK(test.frames.call(CallNumber::cuEventQuery, event.handle).status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuDevicePrimaryCtxRelease_v2, CUdevice{0}).status ==
        CUDA_SUCCESS);
  CHECK(test.quota.used() == before);
  CHECK(test.frames.call(CallNumber::cuEventQuery, event.handle).status ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("limits that are raised in a green context are those of the primary one") {
  Fixture test;
  const std::uint64_t before = test.quota.used();
  CHECK(test.frames.call(CallNumber::cuDevicePrimaryCtxRetain, CUdevice{0}).status == CUDA_SUCCESS);
  const auto green = makeGreen(test);
  REQUIRE(green.status == CUDA_SUCCESS);
  static CUcontext current = nullptr;
  const auto getCurrent =
      std::exchange(test.session.driver.cuCtxGetCurrent,
                    [](CUcontext* context) { return *context = current, CUDA_SUCCESS; });
  const auto raise = [&](std::uint64_t handle) {
    current = static_cast<CUcontext>(test.session.handles.find(wire::HandleKind::context, handle));
    REQUIRE(current != nullptr);
    test.frames.call(CallNumber::cuCtxSetCurrent, handle);
    for (const auto& [limit, value] : {std::pair{CU_LIMIT_STACK_SIZE, std::size_t{2048}},
                                       std::pair{CU_LIMIT_MALLOC_HEAP_SIZE, 64 * kMiB}})
      CHECK(test.frames.call(CallNumber::cuCtxSetLimit, limit, value).status == CUDA_SUCCESS);
    return test.quota.used();
  };
  const std::uint64_t raised = raise(green.second);
  CHECK(raised > before + 56 * kMiB);
  CHECK(raise(wire::primaryContextHandle(0)) == raised);
  test.session.driver.cuCtxGetCurrent = getCurrent;
  test.frames.call(CallNumber::cuCtxSetCurrent, test.context);
  CHECK(test.frames.call(CallNumber::cuGreenCtxDestroy, green.handle).status == CUDA_SUCCESS);
  CHECK(test.quota.used() == raised);
  CHECK(test.frames.call(CallNumber::cuDevicePrimaryCtxRelease_v2, CUdevice{0}).status ==
        CUDA_SUCCESS);
  CHECK(test.quota.used() == before);
}

TEST_CASE("a green context takes only resources that the driver gave") {
  Fixture test;
  const auto asked =
      test.frames.call(CallNumber::cuDeviceGetDevResource, CUdevice{0}, CU_DEV_RESOURCE_TYPE_SM);
  CHECK(asked.status == CUDA_SUCCESS);
  CUdevResource forged{};
  forged.type = CU_DEV_RESOURCE_TYPE_SM;
  forged.sm = {1'000'000, 0, 0};
  CHECK(test.frames
            .call(CallNumber::cuDevSmResourceSplitByCount, forged, std::uint32_t{1},
                  std::uint32_t{0}, std::uint32_t{0}, std::uint32_t{8})
            .status == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  CHECK(describe(test, forged).status == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  const auto green = makeGreen(test);
  CHECK(green.status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuGreenCtxDestroy, green.handle).status == CUDA_SUCCESS);
  CHECK(test.frames.call(CallNumber::cuGreenCtxDestroy, green.handle).status ==
        CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
