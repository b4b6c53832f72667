#include "nvml/process_name.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace nvml {

Return readProcessName(unsigned pid, char* name, unsigned length) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  name[0] = '\0';
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return kNotFound;
  const ssize_t bytes = read(file, name, length - 1);
  close(file);
  name[bytes > 0 ? bytes : 0] = '\0';
  return bytes > 0 ? kSuccess : kNotFound;
}

}  // namespace nvml
