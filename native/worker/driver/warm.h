// A warm worker starts its driver before it has a client, because that takes most of a program's
// first call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/worker/driver/driver_start.h"
#include "native/worker/driver/environment.h"
#include "native/worker/options.h"
#include "wire/hello.h"

namespace worker {

struct WarmDriver {
  Options options;  ///< that it was started with
  Environment environment;
  Driver driver{};
  DriverStart start;
  CUcontext context =
      nullptr;  ///< the primary one of device 0, retained once; null when there is no driver
  std::vector<wire::AddressRange> windows;  ///< reserved: one of them becomes the client's

  /// Starts it. `start` says how that went.
  explicit WarmDriver(const Options& options);

  /// Whether the driver suits the client as well as one that was started for it.
  bool suits(const Options& wanted, const Environment& environment,
             const wire::AddressRange& window) const;
};

/// Waits until the proxy says, through the control socket on descriptor 3, whom to serve: one
/// packet with the arguments of an ordinary worker, separated by NUL, and with its connection,
/// report, log and command socket, which take their places. Empty when the proxy closes the socket.
/// `sentence` says what was wrong with a packet.
std::vector<std::string> awaitAssignment(std::string& sentence);

}  // namespace worker
