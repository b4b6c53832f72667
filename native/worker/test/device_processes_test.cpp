#include "native/worker/gpus/device_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "test/unit/program.h"

namespace {

/// What printDeviceProcesses() prints with this library.
std::string printed(const std::string& library, int& status) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  status = worker::printDeviceProcesses({.processes = library});
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
