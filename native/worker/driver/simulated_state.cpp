#include "native/worker/driver/simulated_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace worker {

std::string shareSimulatedState(const std::string& file) {
  constexpr int kAboveFixedNumbers = 64;  // the fixed numbers are in descriptors.h
  if (file.empty()) return {};
  const int opened = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int descriptor = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, kAboveFixedNumbers);
  if (descriptor < 0)
    return "the state of the simulated GPUs, " + file +
           ", cannot be opened: " + std::strerror(errno);
  close(opened);
  setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", std::to_string(descriptor).c_str(), 1);
  return {};
}

}  // namespace worker
