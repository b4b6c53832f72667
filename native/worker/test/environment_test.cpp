// The variables that a client passes to its driver, and CUDA_VISIBLE_DEVICES narrowed to the GPUs
// of its allocation.
#include "native/worker/driver/environment.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

#include "native/worker/driver/cache.h"
#include "native/worker/driver/session_environment.h"

namespace {

using worker::driverEnvironment;
using worker::equivalent;
using worker::visibleDevices;

const std::vector<std::string> none;
const std::vector<std::string> two = {"GPU-aaaa", "GPU-bbbb"};

TEST_CASE("CUDA_VISIBLE_DEVICES selects among the GPUs of the allocation") {
  CHECK(visibleDevices(none, nullptr).empty());
  CHECK(visibleDevices(none, "1,0") == "1,0");
  CHECK(visibleDevices(two, nullptr) == "GPU-aaaa,GPU-bbbb");
  CHECK(visibleDevices(two, "1") == "GPU-bbbb");
  CHECK(visibleDevices(two, "1,0") == "GPU-bbbb,GPU-aaaa");
  CHECK(visibleDevices(two, "GPU-b") == "GPU-bbbb");
  CHECK(visibleDevices(two, "0,7,1") == "GPU-aaaa");  // the list ends at an unknown GPU
  CHECK(visibleDevices(two, "") == "-1");
  CHECK(visibleDevices(two, "2") == "-1");
  CHECK(visibleDevices(two, "GPU-cccc") == "-1");  // another tenant's
}

TEST_CASE("the driver sees the GPU on which a session starts first, then where it may move") {
  const auto visible = [](std::string_view given, const worker::Places& places) {
    return worker::placed(
        worker::driverEnvironment(std::as_bytes(std::span(given)), {"GPU-aaaa"}, false, {}),
        places)["CUDA_VISIBLE_DEVICES"];
  };
  const worker::Places stays{}, may{"", {"GPU-bbbb", "GPU-cccc"}}, moved{"GPU-bbbb", {"GPU-aaaa"}};
  CHECK(visible("", stays) == "GPU-aaaa");
  CHECK(visible("", may) == "GPU-aaaa,GPU-bbbb,GPU-cccc");
  CHECK(visible("", moved) == "GPU-bbbb,GPU-aaaa");
  CHECK(visible("", {"GPU-bbbb", {}}) == "GPU-bbbb");
  CHECK(visible({"CUDA_VISIBLE_DEVICES=GPU-a", 27}, moved) == "GPU-bbbb,GPU-aaaa");
  CHECK(visible({"CUDA_VISIBLE_DEVICES=", 22}, moved) == "-1");
  CHECK(visible({"CUDA_VISIBLE_DEVICES=1", 23}, may) == "-1");
}

TEST_CASE("only harmless variables of the client reach the driver") {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  setenv("HOME", "/here", 1);
  const std::string_view variables(
      "CUDA_VISIBLE_DEVICES=0\0CUDA_CACHE_DISABLE=1\0CUDA_LOG_FILE=/tmp/x\0LD_PRELOAD=/evil.so\0",
      86);
  worker::adopt(driverEnvironment(std::as_bytes(std::span(variables)), {"GPU-aaaa"}, false, {}));
  CHECK(std::getenv("CUDA_LAUNCH_BLOCKING") == nullptr);  // the worker's own variable
  CHECK(std::string_view(std::getenv("CUDA_VISIBLE_DEVICES")) == "GPU-aaaa");
  CHECK(std::string_view(std::getenv("CUDA_CACHE_DISABLE")) == "1");
  CHECK(std::getenv("CUDA_LOG_FILE") == nullptr);
  CHECK(std::getenv("LD_PRELOAD") == nullptr);
  CHECK(std::string_view(std::getenv("HOME")) == "/here");
  const std::string_view checked(
      "NVIDIA_VIRTUAL_SIMULATOR_CHECK=races\0NVIDIA_VIRTUAL_SIMULATED_GPUS=8\0", 69);
  CHECK(driverEnvironment(std::as_bytes(std::span(checked)), {}, false, {}) ==
        (worker::Environment{{"NVIDIA_VIRTUAL_SIMULATOR_CHECK", "races"}}));
  const std::string_view unterminated("CUDA_CACHE_DISABLE=1");
  worker::adopt(driverEnvironment(std::as_bytes(std::span(unterminated)), {}, false, {}));
  CHECK(std::getenv("CUDA_CACHE_DISABLE") == nullptr);
}

TEST_CASE("checks of simulated GPUs do not reach a worker with a real one") {
  const std::string_view given("NVIDIA_VIRTUAL_SIMULATOR_CHECK=memory\0CUDA_LAUNCH_BLOCKING=1\0",
                               61);
  const auto variables = std::as_bytes(std::span(given));
  worker::Options options;
  CHECK(worker::sessionEnvironment(variables, options) ==
        worker::Environment{{"CUDA_LAUNCH_BLOCKING", "1"}});
  options.simulatedState = "/var/lib/nvidia-virtual/simulated-gpus";
  CHECK(worker::sessionEnvironment(variables, options) ==
        worker::Environment{{"CUDA_LAUNCH_BLOCKING", "1"},
                            {"NVIDIA_VIRTUAL_SIMULATOR_CHECK", "memory"}});
}

TEST_CASE("a program can hide all GPUs from itself") {
  const auto hides = [](std::string_view given, const std::vector<std::string>& gpus) {
    worker::adopt(driverEnvironment(std::as_bytes(std::span(given)), gpus, false, {}));
    return worker::hidesAll(gpus);
  };
  CHECK(hides({"CUDA_VISIBLE_DEVICES=\0", 22}, two));
  CHECK(!hides({"CUDA_VISIBLE_DEVICES=1\0", 23}, two));
  CHECK(!hides({}, two));  // a GPU that is lost was not hidden by the program
  CHECK(hides({"CUDA_VISIBLE_DEVICES=7\0", 23}, {}));
  CHECK(!hides({}, {}));
}

TEST_CASE("no variable that names a file or waits reaches the driver") {
  // A worker sees the mounts of the host: a client must not make a driver write, load or wait for
  // anything there.
  for (const char* name :
       {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_COREDUMP_FILE", "CUDA_COREDUMP_PIPE",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "CUDA_DEVICE_WAITS_ON_EXCEPTION",
        "CUDA_INJECTION64_PATH", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE", "CUDA_LOG_FILE",
        "CUDA_AUTO_BOOST", "CUDA_HOME", "CUDA_OF_TOMORROW", "CUDA_", ""}) {
    const std::string given = std::string(name) + "=1" + '\0';
    CHECK(driverEnvironment(std::as_bytes(std::span(given)), {}, false, {}).empty());
  }
}

TEST_CASE("the worker sets the cache") {
  const std::string_view cached("CUDA_CACHE_PATH=/elsewhere\0CUDA_CACHE_MAXSIZE=99999999999\0", 58);
  CHECK(driverEnvironment(std::as_bytes(std::span(cached)), {}, true, {}) ==
        worker::Environment({{"CUDA_CACHE_PATH", worker::kCachePath},
                             {"CUDA_CACHE_MAXSIZE", worker::kCacheBytes}}));
}

TEST_CASE("a client neither chooses its MPS server nor lifts a limit") {
  const std::string_view mps(
      "CUDA_MPS_PIPE_DIRECTORY=/tmp/"
      "evil\0CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100\0CUDA_MPS_CLIENT_PRIORITY=0\0",
      99);
  CHECK(driverEnvironment(std::as_bytes(std::span(mps)), {}, false, {}).empty());
  const worker::Environment limited =
      driverEnvironment(std::as_bytes(std::span(mps)), {}, false, {"/pipes", 25, (5 << 20) + 1});
  CHECK(limited == worker::Environment({{"CUDA_MPS_PIPE_DIRECTORY", "/pipes"},
                                        {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25"},
                                        {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=6M"}}));
  CHECK(!driverEnvironment({}, {}, false, {"/pipes", 100, 0})
             .contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
}

TEST_CASE("environments are equivalent if they differ in loading only") {
  CHECK(equivalent({{"CUDA_X", "1"}}, {{"CUDA_X", "1"}, {"CUDA_MODULE_LOADING", "LAZY"}}));
  CHECK(!equivalent({{"CUDA_MODULE_LOADING", "EAGER"}}, {}));
  CHECK(!equivalent({{"CUDA_X", "1"}}, {{"CUDA_X", "2"}}));
}

}  // namespace
