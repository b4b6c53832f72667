#include <vector>

#include "native/worker/test/session_fixture.h"

namespace {

using worker::test::Reply;
using worker::test::SimulatedSession;

/// Calls of destructors that the driver has yet to make.
std::vector<std::pair<CUhostFn, void*>> late;
int only = 0;

TEST_CASE("an object at the address of a former one outlives the call of its destructor") {
  SimulatedSession test(worker::test::kMiB);
  worker::Driver& driver = test.session.driver;
  driver.cuUserObjectCreate = [](CUuserObject* object, void* argument, CUhostFn destroy, unsigned,
                                 unsigned) {
    late.emplace_back(destroy, argument);
    *object = reinterpret_cast<CUuserObject>(&only);
    return CUDA_SUCCESS;
  };
  driver.cuUserObjectRetain = [](CUuserObject, unsigned) { return CUDA_SUCCESS; };
  const auto create = [&] {
    const Reply made = test.frames.call(CallNumber::cuUserObjectCreate, std::uint64_t{0},
                                        std::uint64_t{0}, 1u, 1u);
    CHECK(made.status == CUDA_SUCCESS);
    return made.handle;
  };
  const auto retain = [&](std::uint64_t object) {
    return test.frames.call(CallNumber::cuUserObjectRetain, object, 1u).status;
  };
  const std::uint64_t former = create();
  CHECK(retain(former) == CUDA_SUCCESS);
  const std::uint64_t object = create();
  CHECK(retain(former) == CUDA_ERROR_INVALID_HANDLE);
  late[0].first(late[0].second);
  CHECK(retain(object) == CUDA_SUCCESS);
  late[1].first(late[1].second);
  CHECK(retain(object) == CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
