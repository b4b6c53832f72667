#include "native/worker/driver/layout.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "native/worker/descriptors.h"
#include "native/worker/reports/log.h"

namespace worker {

namespace {

int present() { return personality(0xffffffff); }

}  // namespace

bool layoutSuits(bool deviceRangesTaken) {
  const int persona = present();
  return persona < 0 || ((persona & ADDR_COMPAT_LAYOUT) != 0) != deviceRangesTaken;
}

void changeLayout(char** arguments) {
  if (personality(static_cast<unsigned>(present()) ^ ADDR_COMPAT_LAYOUT) < 0)
    return log(
        "the system refuses to change the memory layout (personality: %s); continuing without it",
        std::strerror(errno));
  startAgain(arguments);
}

void startAgain(char** arguments) {
  // Close the driver's files, so that the GPU memory it held is freed.
  syscall(SYS_close_range, kReport + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  fcntl(kControl, F_SETFD, 0);
  execv("/proc/self/exe", arguments);
  log("the worker cannot start again: %s", std::strerror(errno));
}

}  // namespace worker
