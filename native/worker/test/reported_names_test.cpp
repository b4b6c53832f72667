// Each name is new once; invalid names and names beyond the limit are ignored.
#include "native/worker/reports/reported_names.h"

#include <doctest/doctest.h>

namespace {

using worker::ReportedNames;

TEST_CASE("a name is new once") {
  ReportedNames calls;
  CHECK(calls.isNew("cuGraphCreate"));
  CHECK(calls.isNew("cuMemcpy2D with arrays"));
  CHECK(calls.isNew("cuTexRefGetArray_v2"));
  CHECK(!calls.isNew("cuGraphCreate"));
}

TEST_CASE("an invalid or long name is ignored") {
  ReportedNames calls;
  CHECK(!calls.isNew(""));
  CHECK(!calls.isNew("cu\n"));
  CHECK(!calls.isNew("cu\""));
  CHECK(!calls.isNew("cu\x80"));
  CHECK(!calls.isNew({"\0", 1}));
  CHECK(!calls.isNew(std::string(ReportedNames::kLongestName + 1, 'a')));
  CHECK(calls.isNew(std::string(ReportedNames::kLongestName, 'a')));
}

TEST_CASE("names beyond the limit are ignored") {
  ReportedNames calls;
  std::size_t news = 0;
  for (std::size_t i = 0; i < 2 * ReportedNames::kMost; ++i)
    news += calls.isNew("cu" + std::to_string(i)) ? 1 : 0;
  CHECK(news == ReportedNames::kMost);
}

}  // namespace
