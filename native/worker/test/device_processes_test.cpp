#include "native/worker/gpus/device_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "wire/test/check.h"

namespace {

/// What it prints with this library.
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

int main(int, char** arguments) {
  int status = -1;
  const std::string line = printed(arguments[1], status);
  CHECK(status == 0);
  CHECK(line.starts_with(
      R"({"gpus":[{"uuid":"GPU-a","processes":[{"pid":1,"memory":0,"busy":0},{"pid":2,"memory":1024,"busy":0},)"));
  CHECK(line.find(R"({"pid":100,"memory":101376,"busy":0}]},{"uuid":"GPU-b","processes":[]}]})") !=
        std::string::npos);
  CHECK(printed("/nonexistent/libnvidia-ml.so.1", status).empty() && status == 1);
  CHECK(printed("libc.so.6", status).empty() && status == 1);
  return wire::test::checkedResult();
}
