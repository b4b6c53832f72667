// Each name is new once; invalid names and names beyond the limit are ignored.
#include "native/worker/reports/reported_names.h"

#include "wire/test/check.h"

namespace {

using worker::ReportedNames;

void testOnce() {
  ReportedNames calls;
  CHECK(calls.isNew("cuGraphCreate") && calls.isNew("cuMemcpy2D with arrays") &&
        calls.isNew("cuTexRefGetArray_v2"));
  CHECK(!calls.isNew("cuGraphCreate"));
}

void testNoNames() {
  ReportedNames calls;
  CHECK(!calls.isNew("") && !calls.isNew("cu\n") && !calls.isNew("cu\"") &&
        !calls.isNew("cu\x80") && !calls.isNew({"\0", 1}));
  CHECK(!calls.isNew(std::string(ReportedNames::kLongestName + 1, 'a')));
  CHECK(calls.isNew(std::string(ReportedNames::kLongestName, 'a')));
}

void testMost() {
  ReportedNames calls;
  std::size_t news = 0;
  for (std::size_t i = 0; i < 2 * ReportedNames::kMost; ++i)
    news += calls.isNew("cu" + std::to_string(i)) ? 1 : 0;
  CHECK(news == ReportedNames::kMost);
}

}  // namespace

int main() {
  testOnce();
  testNoNames();
  testMost();
  return wire::test::checkedResult();
}
