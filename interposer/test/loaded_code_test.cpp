// Code is known until a handle that owns it has ended. No other code is forgotten.
#include "interposer/code/loaded_code.h"

#include <doctest/doctest.h>

#include "interposer/code/kernels.h"

namespace {

using interposer::CodeOwners;

constexpr std::uint64_t kContext = 1, kOther = 2, kLibrary = 10, kModule = 20, kPart = 21,
                        kKernel = 30, kFunction = 40;

struct Fixture {
  interposer::LoadedCode code;
  Fixture() {
    add(kModule, {0, kContext}, false);
    add(kFunction, {kModule, 0});
    add(kKernel, {kLibrary, 0});
    add(kFunction + 1, {kKernel, kContext});
    add(kFunction + 2, {kKernel, kOther});
    add(kPart, {kLibrary, kContext}, false);
    add(kFunction + 3, {kPart, 0});
  }
  void add(std::uint64_t handle, CodeOwners owners, bool kernel = true) {
    code.add(handle, owners, kernel ? std::make_shared<interposer::Kernel>() : nullptr);
  }
  bool knows(std::uint64_t handle) const { return code.find(handle) != nullptr; }
  unsigned kernels() const {
    unsigned count = 0;
    code.eachKernel([&](interposer::Kernel&) { ++count; });
    return count;
  }
};

TEST_CASE("the code of a module ends with the module") {
  Fixture test;
  CHECK(test.kernels() == 5);
  CHECK(test.knows(kFunction));
  CHECK(!test.knows(kModule));
  CHECK(!test.knows(99));
  const auto ended = test.code.end(kModule);
  REQUIRE(ended.size() == 2);
  CHECK(ended.contains(kModule));
  CHECK(ended.at(kFunction) != nullptr);
  CHECK(!test.knows(kFunction));
  CHECK(test.kernels() == 4);
  CHECK(test.code.end(kModule).size() == 1);
}

TEST_CASE("a module is of its context until it ends") {
  Fixture test;
  CHECK(test.code.isModuleOf(kModule, kContext));
  CHECK(!test.code.isModuleOf(kModule, kOther));
  CHECK(!test.code.isModuleOf(kPart, kContext));  // of a library
  CHECK(!test.code.isModuleOf(kFunction + 1, kContext));
  CHECK(!test.code.isModuleOf(99, kContext));
  test.code.end(kModule);
  CHECK(!test.code.isModuleOf(kModule, kContext));
}

TEST_CASE("the code of a library ends with the library") {
  Fixture test;
  CHECK(test.code.end(kLibrary).size() == 6);
  CHECK(test.kernels() == 1);
  CHECK(test.knows(kFunction));
}

TEST_CASE("the code of a context ends with the context") {
  Fixture test;
  CHECK(test.code.end(kContext).size() == 6);
  CHECK(test.kernels() == 2);
  CHECK(test.knows(kKernel));
  CHECK(test.knows(kFunction + 2));
}

TEST_CASE("a handle that is added again keeps its kernel") {
  Fixture test;
  const auto known = test.code.find(kKernel);
  CHECK(test.code.add(kKernel, {}, std::make_shared<interposer::Kernel>()) == known);
}

}  // namespace
