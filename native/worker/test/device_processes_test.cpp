#include "native/worker/gpus/device_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "test/unit/program.h"

namespace {

/// What printDeviceProcesses() prints with this library.
std::string printed(const std::string& library, int& status, bool answers = false) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  status = worker::printDeviceProcesses({.processes = library, .answers = answers});
  dup2(before, STDOUT_FILENO);
  close(ends[1]);
  close(before);
  char text[65536];
  std::string all;
  for (ssize_t bytes = 0; (bytes = read(ends[0], text, sizeof text)) > 0;) all.append(text, bytes);
  close(ends[0]);
  return all;
}

}  // namespace

TEST_CASE("the processes of each GPU are printed with their memory") {
  int status = -1;
  const std::string line = printed(unit::argument(0, "the path of the NVML double"), status);
  CHECK(status == 0);
  CHECK(line.starts_with(R"({"gpus":[{"uuid":"GPU-a","processes":[{"pid":1,"memory":0,"busy":0},)"
                         R"({"pid":2,"memory":1024,"busy":0},)"));
  CHECK(line.find(R"({"pid":100,"memory":101376,"busy":0}]},{"uuid":"GPU-b","processes":[]}]})") !=
        std::string::npos);
  CHECK(printed("/nonexistent/libnvidia-ml.so.1", status).empty());
  CHECK(status == 1);
  CHECK(printed("libc.so.6", status).empty());
  CHECK(status == 1);
}

TEST_CASE("answers are the bytes of NVML's results; what it does not support is left out") {
  int status = -1;
  const std::string line = printed(unit::argument(0, "the path of the NVML double"), status, true);
  CHECK(status == 0);
  const auto has = [&](const char* text) { return line.find(text) != std::string::npos; };
  CHECK(has(R"("constants":{"nvmlDeviceGetName":"0 616263","nvmlDeviceGetUUID":"0 4750552d61",)"
            R"("nvmlDeviceGetEccMode":"0 0100000002000000",)"
            R"("nvmlDeviceGetPdi":"0 10000001000000000500000000000000"})"));
  CHECK(has(R"("readings":{"nvmlDeviceGetClockInfo/0":"0 ff000000",)"
            R"("nvmlDeviceGetClockInfo/1":"999 "})"));
  CHECK(has(R"("system":{"nvmlSystemGetCudaDriverVersion_v2":"0 c8320000"})"));
}
