// Answering the client's hello.
#pragma once

#include <sys/types.h>

#include <string>

#include "native/worker/driver_start.h"
#include "native/worker/options.h"
#include "native/worker/session.h"

namespace worker {

class SessionStart {
 public:
  /// `client` is the process at the other end of the session's connection.
  SessionStart(const Options& options, Session& session, pid_t client) : options_(options), session_(session), client_(client) {}

  /// Starts the driver and welcomes the client; false when there is no session to serve, which client and proxy have then been told.
  bool run();

 private:
  bool readHello(const wire::Message& message);
  bool checkHello();
  bool openDriver();
  bool chargeContext();
  void report();
  bool fail(CUresult status, const std::string& sentence);
  void answer(std::span<const std::byte> rest, std::uint32_t devices);
  void welcome();
  void refuse();

  const Options& options_;
  Session& session_;
  pid_t client_;
  wire::Hello hello_{};
  DriverStart start_;
};

}  // namespace worker
