// Answering the client's hello.
#pragma once

#include <sys/types.h>

#include <string>

#include "native/worker/driver/driver_start.h"
#include "native/worker/driver/warm.h"
#include "native/worker/options.h"
#include "native/worker/session/session.h"

namespace worker {

class SessionStart {
 public:
  /// `client` is the process at the other end of the session's connection, `warm` a driver that has
  /// started already and suits it, or null.
  SessionStart(const Options& options, Session& session, pid_t client, const WarmDriver* warm)
      : options_(options),
        session_(session),
        client_(client),
        program_(programName(client)),
        warm_(warm) {}

  /// Starts the driver and welcomes the client. On failure tells client and proxy, and returns
  /// false.
  bool run();

 private:
  static std::string programName(pid_t pid);
  bool readHello(const wire::Message& message);
  bool checkHello();
  bool mapsMemory() const;
  static bool checksMemory();
  bool openDriver();
  void hideOtherPlaces();
  void installMemory();
  void checkMps();
  bool chargeContext();
  void openFaultDevice();
  bool giveUpRights();
  bool giveUpSystemCalls();
  void report();
  bool fail(CUresult status, const std::string& sentence);
  void answer(std::span<const std::byte> rest, std::uint32_t devices);
  void welcome();
  void refuse();

  const Options& options_;
  Session& session_;
  pid_t client_;
  std::string program_;  ///< asked for while this process may still ask
  const WarmDriver* warm_;
  wire::Hello hello_{};
  DriverStart start_;
  std::string present_;  ///< UUID of the GPU on which the session is
  int faultDevice_ = -1;
  bool wanted_ =
      false;  ///< the program chose what it got: nothing that an administrator should look at
};

}  // namespace worker
