// Of the names that a client tells, each is news once, and neither what is no name nor more than a program can mean.
#include "native/worker/unsupported_calls.h"

#include "wire/test/check.h"

namespace {

using worker::UnsupportedCalls;

void testOnce() {
  UnsupportedCalls calls;
  CHECK(calls.isNews("cuGraphCreate") && calls.isNews("cuMemcpy2D with arrays") && calls.isNews("cuTexRefGetArray_v2"));
  CHECK(!calls.isNews("cuGraphCreate"));
}

void testNoNames() {
  UnsupportedCalls calls;
  CHECK(!calls.isNews("") && !calls.isNews("cu\n") && !calls.isNews("cu\"") && !calls.isNews("cu\x80") && !calls.isNews({"\0", 1}));
  CHECK(!calls.isNews(std::string(UnsupportedCalls::kLongestName + 1, 'a')));
  CHECK(calls.isNews(std::string(UnsupportedCalls::kLongestName, 'a')));
}

void testMost() {
  UnsupportedCalls calls;
  std::size_t news = 0;
  for (std::size_t i = 0; i < 2 * UnsupportedCalls::kMost; ++i) news += calls.isNews("cu" + std::to_string(i)) ? 1 : 0;
  CHECK(news == UnsupportedCalls::kMost);
}

}  // namespace

int main() {
  testOnce();
  testNoNames();
  testMost();
  return wire::test::checkedResult();
}
