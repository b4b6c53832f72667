#include "interposer/session/stream_threads.h"

#include <doctest/doctest.h>

using interposer::StreamThreads;

TEST_CASE("a thread's launches share from the second one on") {
  StreamThreads threads;
  CHECK(!threads.mayShare(100, 1));
  CHECK(threads.mayShare(100, 1));
  threads.shared(100, 1);
  CHECK(threads.mayShare(100, 1));
}

TEST_CASE("a launch behind one of another thread does not share") {
  StreamThreads threads;
  threads.mayShare(100, 1);
  CHECK(!threads.mayShare(100, 2));
  CHECK(threads.mayShare(100, 2));
  CHECK(!threads.mayShare(100, 1));
}

TEST_CASE(
    "a launch beside the first one of another thread makes the next one of both take a place") {
  StreamThreads threads;
  threads.mayShare(100, 1);
  CHECK(threads.mayShare(100, 1));
  CHECK(!threads.mayShare(100, 2));  // meanwhile
  threads.shared(100, 1);
  CHECK(!threads.mayShare(100, 2));
  CHECK(!threads.mayShare(100, 1));
}

TEST_CASE("streams that share a place count as one") {
  StreamThreads threads;
  for (std::uint64_t stream = 4; stream < 5000; stream += 2) threads.mayShare(stream, 1);
  for (std::uint64_t stream = 4; stream < 5000; stream += 2) {
    threads.mayShare(stream, 2);
    CHECK(!threads.mayShare(stream, 1));
  }
}

TEST_CASE("a wait shares for the thread that launched last") {
  StreamThreads threads;
  CHECK(!threads.mayShareWait(100, 1));
  threads.mayShare(100, 1);
  CHECK(threads.mayShareWait(100, 1));
  CHECK(!threads.mayShareWait(100, 2));
  CHECK(threads.mayShareWait(100, 1));
}

TEST_CASE("of the default streams only the per-thread one shares") {
  StreamThreads threads;
  for (const std::uint64_t stream : {0, 1, 2}) {
    for (int time = 0; time < 2; ++time) CHECK(threads.mayShare(stream, 1) == (stream == 2));
    CHECK(threads.mayShareWait(stream, 1) == (stream == 2));
  }
}
