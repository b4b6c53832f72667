// How nvmlInit gets the page from a gpu-proxy that has none yet, or that restarts.
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "nvml/abi.h"
#include "nvml/test/place.h"
#include "test/unit/program.h"

using namespace nvml;

extern "C" {
Return nvmlInit_v2();
}

namespace {

const std::string kGpu = "gpu GPU-0001\nmemory 1000 100\n";

/// Accepts a connection. Checks that the program says nothing, and says so at once.
int acceptSilent(int server) {
  const int connection = accept(server, nullptr, nullptr);
  char byte = 0;
  CHECK(read(connection, &byte, 1) == 0);
  return connection;
}

}  // namespace

TEST_CASE("without a page, nvmlInit connects, so that the container gets its allocation") {
  const Place place;
  const int server = place.listen();
  std::thread proxy([&] {
    const int connection = acceptSilent(server);
    place.publish(kGpu);
    close(connection);
  });
  CHECK(nvmlInit_v2() == kSuccess);
  proxy.join();
  close(server);
}

TEST_CASE("gpu-proxy may take the program before it has read the GPUs") {
  const Place place;
  const int server = place.listen();
  std::thread proxy([&] {
    const int connection = acceptSilent(server);
    place.publish("pending\n");
    close(connection);
    place.publish(kGpu);
  });
  CHECK(nvmlInit_v2() == kSuccess);
  proxy.join();
  close(server);
}

TEST_CASE("a refusal ends nvmlInit") {
  const Place place;
  const int server = place.listen();
  std::thread proxy([&] {
    const int connection = acceptSilent(server);
    CHECK(send(connection, "no", 2, 0) == 2);
    close(connection);
  });
  CHECK(nvmlInit_v2() == kDriverNotLoaded);
  proxy.join();
  close(server);
}

TEST_CASE("nvmlInit connects again while gpu-proxy restarts") {
  const Place place;
  const int first = place.listen();
  std::thread proxy([&] {
    const int lost = acceptSilent(first);
    close(first);
    close(lost);
    const int second = place.listen();
    const int connection = acceptSilent(second);
    place.publish(kGpu);
    close(connection);
    close(second);
  });
  CHECK(nvmlInit_v2() == kSuccess);
  proxy.join();
}
