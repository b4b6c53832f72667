// One client process: its connection, its driver, its objects. The worker process serves exactly one.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "driver.h"
#include "native/worker/callbacks.h"
#include "native/worker/context_account.h"
#include "native/worker/figures.h"
#include "native/worker/gate.h"
#include "native/worker/image_account.h"
#include "native/worker/limits.h"
#include "native/worker/local_memory.h"
#include "native/worker/occasion.h"
#include "native/worker/output.h"
#include "native/worker/physical_memory.h"
#include "native/worker/pool_account.h"
#include "native/worker/quota.h"
#include "native/worker/report.h"
#include "native/worker/reserve_account.h"
#include "native/worker/shared_memory.h"
#include "native/worker/stream_account.h"
#include "native/worker/unsupported_calls.h"
#include "native/worker/warm_context.h"
#include "wire/fault.h"
#include "wire/handle_table.h"
#include "wire/hello.h"
#include "wire/message.h"
#include "wire/ticket.h"

namespace worker {

class Session {
 public:
  Session(int connection, Report& report, Quota& quota, Figures& figures, Output& output, const Limits& limits);

  Driver driver;
  Report& report;
  Quota& quota;
  Figures& figures;
  const Limits limits;
  wire::HandleTable handles;
  wire::TicketTurn turn;
  SharedMemory shared;
  Output& output;
  Callbacks callbacks;
  WarmContext warmContext;
  PhysicalMemory physicalMemory;
  ImageAccount images;
  PoolAccount pools;
  ContextAccount contexts;
  StreamAccount streams;
  LocalMemory localMemory;
  ReserveAccount reserves;
  std::atomic<unsigned> pendingFrees{0};  ///< of memory that no pool gave, in streams that have not got there
  std::atomic<bool> codeMayPrint{false};  ///< some code image that was loaded names the device's printf
  Gate gate{driver, figures.gateNanoseconds};

  /// Serialised over all threads. False when the client is gone.
  bool send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload);

  /// Passes on what the driver has to say of an error (CUDA 12.9 and newer); older drivers say nothing.
  void forwardDriverLog();

  /// Serves the client until it ends; returns how it ended, for the report.
  std::string serve(int clientPidfd);

  /// Ends the session from any thread; `why` becomes the reason. The first one counts.
  void fail(const std::string& why);

  /// Whether the program may make no more objects that have a handle; then it is reported.
  bool handlesUsedUp();

  /// Charges pinned memory; false, and it is reported, when the allocation may not have so much.
  bool pinnedFits(std::uint64_t bytes);

  /// A pool of the program holds memory, which it may release when a stream gets there, and nobody is told: from here on the session looks.
  void watchPools();

  /// A context has ended, and with it all that it held.
  void contextEnded(CUcontext context);

  /// Functions have ended: another may get the address of one of them.
  void codeEnded() { codeChanges_.fetch_add(1, std::memory_order_release); }
  unsigned codeChanges() const { return codeChanges_.load(std::memory_order_acquire); }

  /// A sticky error of the driver, for the report.
  void noteFault(CUresult result);
  CUresult fault() const { return fault_.load(); }

 private:
  void reportOverQuota(std::uint64_t asked);
  bool receive();
  void wake();
  bool settlePools();
  void startThread(int channelFile);
  void noteUnsupported(std::string_view call);

  int connection_;
  int wake_;  ///< eventfd: output is waiting, or the session has failed
  std::mutex sendMutex_;
  std::mutex failMutex_;
  std::string failure_;
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
  std::atomic<bool> poolsWatched_{false};
  std::atomic<unsigned> codeChanges_{0};
  Occasion quotaRefused_;
  Occasion handlesRefused_;
  Occasion pinnedRefused_;
  UnsupportedCalls unsupported_;
};

}  // namespace worker
