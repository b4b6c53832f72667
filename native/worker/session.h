// One client process: its connection, its driver, its objects. The worker process serves exactly one.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "driver.h"
#include "native/worker/callbacks.h"
#include "native/worker/gate.h"
#include "native/worker/image_account.h"
#include "native/worker/launches.h"
#include "native/worker/output.h"
#include "native/worker/physical_memory.h"
#include "native/worker/quota.h"
#include "native/worker/report.h"
#include "native/worker/shared_memory.h"
#include "wire/fault.h"
#include "wire/handle_table.h"
#include "wire/hello.h"
#include "wire/message.h"
#include "wire/ticket.h"

namespace worker {

class Session {
 public:
  Session(int connection, Report& report, Quota& quota);

  Driver driver;
  Report& report;
  Quota& quota;
  wire::HandleTable handles;
  wire::TicketTurn turn;
  SharedMemory shared;
  Output output;
  Callbacks callbacks;
  Launches launches;
  PhysicalMemory physicalMemory;
  ImageAccount images;
  std::atomic<std::uint64_t> gateNanoseconds{0};  ///< waited at the gate
  Gate gate{driver, gateNanoseconds};

  /// Serialised over all threads. False when the client is gone.
  bool send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload);

  /// Passes on what the driver has to say of an error (CUDA 12.9 and newer); older drivers say nothing.
  void forwardDriverLog();

  /// Serves the client until it ends; returns how it ended, for the report.
  std::string serve(int clientPidfd);

  /// Ends the session from any thread; `why` becomes the reason. The first one counts.
  void fail(const std::string& why);

  /// A sticky error of the driver, for the report.
  void noteFault(CUresult result);
  CUresult fault() const { return fault_.load(); }

 private:
  bool receive();
  void startThread(int channelFile);

  int connection_;
  int wake_;  ///< eventfd: output is waiting, or the session has failed
  std::mutex sendMutex_;
  std::mutex failMutex_;
  std::string failure_;
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
};

}  // namespace worker
