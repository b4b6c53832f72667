// What workers of one allocation share: with the simulated driver, and without one.
#include "native/worker/session/sharing.h"

#include <dlfcn.h>

#include <bit>
#include <memory>

#include "native/worker/test/session_fixture.h"
#include "native/worker/test/sharing_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::ExportTable;
using worker::SharedName;
using worker::Sharing;
using worker::test::Allocation;
using Worker = worker::test::SharingWorker;
using worker::test::kMiB;
using Kind = ExportTable::Kind;

const auto kContext = reinterpret_cast<CUcontext>(0x1000);

SharedName content(int value) {
  SharedName made{};
  made[0] = static_cast<std::byte>(value);
  return made;
}

}  // namespace

TEST_CASE("workers of one allocation find what others export, by its name and kind") {
  const Allocation allocation, stranger;
  Worker owner(allocation, 0), user(allocation, 1), other(stranger, 1);
  const auto name = owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(7));
  REQUIRE(name);
  CHECK(owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(7)) == name);
  const auto found = user.sharing.find(Kind::memory, *name);
  REQUIRE(found);
  CHECK(found->content == content(7));
  CHECK(!found->own);
  CHECK(owner.sharing.find(Kind::memory, *name)->own);
  CHECK(!other.sharing.find(Kind::memory, *name));
  CHECK(!user.sharing.find(Kind::event, *name));
  SharedName altered = *name;
  altered[63] = std::byte{1};
  CHECK(!user.sharing.find(Kind::memory, altered));
  CHECK(!user.sharing.find(Kind::memory, SharedName{}));
}

TEST_CASE("memory at an address that is exported again has another name") {
  const Allocation allocation;
  Worker owner(allocation, 0), user(allocation, 1);
  const auto first = owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(1));
  const auto second = owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(2));
  CHECK(first != second);
  CHECK(!user.sharing.find(Kind::memory, *first));
  CHECK(user.sharing.find(Kind::memory, *second));
}

TEST_CASE("memory whose owner has ended is charged until its last user closes it") {
  const Allocation allocation;
  Worker owner(allocation, 0), user(allocation, 1), second(allocation, 2);
  const auto name = owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(1));
  const auto found = user.sharing.find(Kind::memory, *name);
  user.sharing.opened(0x9000, kContext, *found);
  user.sharing.opened(0x9000, kContext, *user.sharing.find(Kind::memory, *name));
  const auto seconds = second.sharing.find(Kind::memory, *name);
  CHECK(owner.table.orphaned() == 0);
  owner.sharing.ended(Kind::memory, 0x2000);
  CHECK(user.table.orphaned() == 2 * kMiB);  // whole pages
  CHECK(!second.sharing.find(Kind::memory, *name));
  second.sharing.release(*seconds);
  user.sharing.release(user.sharing.take(0x9000, Kind::memory)->found);
  CHECK(user.table.orphaned() == 2 * kMiB);
  user.sharing.release(user.sharing.take(0x9000, Kind::memory)->found);
  CHECK(!user.sharing.take(0x9000, Kind::memory));
  CHECK(owner.table.orphaned() == 0);
}

TEST_CASE("the end of a context ends its exports, and closes what it has opened") {
  const Allocation allocation;
  Worker owner(allocation, 0), user(allocation, 1);
  const auto name = owner.sharing.share(Kind::memory, 0x2000, kContext, kMiB, content(1));
  const auto found = user.sharing.find(Kind::memory, *name);
  user.sharing.opened(0x9000, kContext, *found);
  owner.sharing.contextEnded(kContext);
  CHECK(!user.sharing.find(Kind::memory, *name));
  CHECK(user.table.orphaned() == 2 * kMiB);
  user.sharing.contextEnded(kContext);
  CHECK(user.table.orphaned() == 0);
}

TEST_CASE("an allocation exports at most 4096 objects at a time") {
  const Allocation allocation;
  Worker owner(allocation, 0);
  for (std::uint64_t i = 0; i < ExportTable::kEntries; ++i)
    CHECK(owner.sharing.share(Kind::memory, i, kContext, 0, content(1)));
  CHECK(!owner.sharing.share(Kind::memory, 1 << 20, kContext, 0, content(1)));
  owner.sharing.ended(Kind::memory, 5);
  CHECK(owner.sharing.share(Kind::memory, 1 << 20, kContext, 0, content(1)));
}

TEST_CASE("orphaned memory fills the quota") {
  const Allocation allocation;
  const std::string file = worker::test::makeQuotaFile(8 * kMiB);
  Worker owner(allocation, 0);
  worker::Quota quota;
  REQUIRE(quota.open(file, 1, 8 * kMiB) == "");
  REQUIRE(Sharing::open(allocation.directory(), 1, quota.exports) == "");
  Sharing user{quota.exports};
  const auto name = owner.sharing.share(Kind::memory, 0x2000, kContext, 6 * kMiB, content(1));
  const auto found = user.find(Kind::memory, *name);
  CHECK(quota.used() == 0);
  owner.sharing.ended(Kind::memory, 0x2000);
  CHECK(quota.used() == 6 * kMiB);
  CHECK(!quota.charge(3 * kMiB));
  user.release(*found);
  CHECK(quota.charge(3 * kMiB));
  unlink(file.c_str());
}

TEST_CASE("a table of another kind is refused") {
  const Allocation allocation;
  ExportTable table;
  CHECK(table.open(allocation.directory(), 0) != "");
  CHECK(table.open("/dev/null", 0) != "");
  CHECK(table.open(allocation.directory() + "/exports", 240) != "");
  CHECK(!table.isOpen());
}

TEST_CASE("frames with invented handles, also those that the driver would accept, are refused") {
  const Allocation allocation;
  worker::Report report(-1);
  worker::Quota quota;
  worker::Figures figures{};
  worker::Output output;
  REQUIRE(Sharing::open(allocation.directory(), 0, quota.exports) == "");
  // never destroyed: threads of the driver use it until the process exits
  auto& session = *new worker::Session(-1, report, quota, figures, output, {});
  REQUIRE(
      worker::load(dlopen(unit::argument(0, "a driver"), RTLD_NOW | RTLD_LOCAL), session.driver));
  CUcontext context = nullptr;
  REQUIRE(session.driver.cuInit(0) == CUDA_SUCCESS);
  session.memory.install(session.driver, false);
  REQUIRE(session.driver.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(session.driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  worker::test::Frames client(session);
  const auto memory = client.call(CallNumber::cuMemAlloc_v2, 4 * kMiB);
  REQUIRE(memory.status == CUDA_SUCCESS);
  CUipcMemHandle native{};
  CUdeviceptr exported = 0;
  REQUIRE(session.memory.below().cuMemAlloc_v2(&exported, 4 * kMiB) == CUDA_SUCCESS);
  REQUIRE(session.driver.cuIpcGetMemHandle(&native, exported) == CUDA_SUCCESS);
  const auto open = [&](const CUipcMemHandle& handle) {
    return client.call(CallNumber::cuIpcOpenMemHandle_v2, handle, 1u).status;
  };
  CHECK(session.driver.cuIpcOpenMemHandle_v2(nullptr, native, 1) != CUDA_ERROR_NOT_SUPPORTED);
  CHECK(open(native) == CUDA_ERROR_INVALID_VALUE);
  CHECK(open({}) == CUDA_ERROR_INVALID_VALUE);
  const auto name = session.sharing.share(Kind::memory, memory.handle, context, 4 * kMiB,
                                          std::bit_cast<SharedName>(native));
  CHECK(open(std::bit_cast<CUipcMemHandle>(*name)) == CUDA_ERROR_INVALID_CONTEXT);
  CUipcEventHandle event{};
  std::memcpy(&event, &*name, sizeof event);  // a name of another kind
  CHECK(client.call(CallNumber::cuIpcOpenEventHandle, event).status == CUDA_ERROR_MAP_FAILED);
  CHECK(client.call(CallNumber::cuIpcCloseMemHandle, memory.handle).status ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuIpcGetMemHandle, memory.handle + 64 * kMiB).status !=
        CUDA_SUCCESS);
  session.sharing.ended(Kind::memory, memory.handle);
  CHECK(open(std::bit_cast<CUipcMemHandle>(*name)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(client.call(CallNumber::cuMemFree_v2, memory.handle).status == CUDA_SUCCESS);
}
