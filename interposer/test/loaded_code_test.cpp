// Code is known until what it ends with has ended, and no other code is forgotten.
#include "interposer/code/loaded_code.h"

#include "interposer/code/kernels.h"
#include "wire/test/check.h"

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

void testModule() {
  Fixture test;
  CHECK(test.kernels() == 5 && test.knows(kFunction) && !test.knows(kModule) && !test.knows(99));
  const auto ended = test.code.end(kModule);
  CHECK(ended.size() == 2 && ended.contains(kModule) && ended.at(kFunction) != nullptr);
  CHECK(!test.knows(kFunction) && test.kernels() == 4);
  CHECK(test.code.end(kModule).size() == 1);
}

void testLibrary() {
  Fixture test;
  CHECK(test.code.end(kLibrary).size() == 6);
  CHECK(test.kernels() == 1 && test.knows(kFunction));
}

void testContext() {
  Fixture test;
  CHECK(test.code.end(kContext).size() == 6);
  CHECK(test.kernels() == 2 && test.knows(kKernel) && test.knows(kFunction + 2));
}

void testKnown() {
  Fixture test;
  const auto known = test.code.find(kKernel);
  CHECK(test.code.add(kKernel, {}, std::make_shared<interposer::Kernel>()) == known);
}

}  // namespace

int main() {
  testModule();
  testLibrary();
  testContext();
  testKnown();
  return wire::test::checkedResult();
}
