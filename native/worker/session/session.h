// One client process: its connection, driver and objects. A worker process serves exactly one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "driver.h"
#include "native/worker/accounts/context_account.h"
#include "native/worker/accounts/graph_memory.h"
#include "native/worker/accounts/held_memory.h"
#include "native/worker/accounts/image_account.h"
#include "native/worker/accounts/limits.h"
#include "native/worker/accounts/local_memory.h"
#include "native/worker/accounts/physical_memory.h"
#include "native/worker/accounts/pool_account.h"
#include "native/worker/accounts/quota.h"
#include "native/worker/accounts/reserve_account.h"
#include "native/worker/accounts/slack_account.h"
#include "native/worker/accounts/stream_account.h"
#include "native/worker/driver/warm_context.h"
#include "native/worker/gate/gate.h"
#include "native/worker/memory/movable_memory.h"
#include "native/worker/reports/figures.h"
#include "native/worker/reports/rate_limit.h"
#include "native/worker/reports/report.h"
#include "native/worker/reports/reported_names.h"
#include "native/worker/session/callbacks.h"
#include "native/worker/session/captures.h"
#include "native/worker/session/connection.h"
#include "native/worker/session/file_exports.h"
#include "native/worker/session/green_contexts.h"
#include "native/worker/session/host_functions.h"
#include "native/worker/session/managed_memory.h"
#include "native/worker/session/output.h"
#include "native/worker/session/pending_frees.h"
#include "native/worker/session/readers.h"
#include "native/worker/session/shared_memory.h"
#include "native/worker/session/sharing.h"
#include "native/worker/session/swap.h"
#include "native/worker/session/texture_objects.h"
#include "native/worker/session/timeline.h"
#include "native/worker/session/user_objects.h"
#include "native/worker/session/uses.h"
#include "wire/fault.h"
#include "wire/handle_table.h"
#include "wire/hello.h"
#include "wire/message.h"
#include "wire/ticket.h"

namespace worker {

class Session {
 public:
  Session(int connection, Report& report, Quota& quota, Figures& figures, Output& output,
          const Limits& limits);

  Connection connection;
  Driver driver;
  Report& report;
  Quota& quota;
  Figures& figures;
  const Limits limits;
  wire::HandleTable handles;
  wire::TicketTurn turn;
  Uses uses;
  Readers readers{figures.waiting};
  SharedMemory shared;
  ManagedMemory managed;
  Output& output;
  Callbacks callbacks;
  Captures captures;
  UserObjects userObjects;
  TextureObjects textureObjects{handles};
  GreenContexts greenContexts;
  WarmContext warmContext;
  MovableMemory memory;
  SlackAccount slack;
  PendingFrees pendingFrees;
  Swap swap{memory, [this] { return copyContext(); }};
  Sharing sharing;
  FileExports fileExports;
  PhysicalMemory physicalMemory;
  ImageAccount images;
  PoolAccount pools;
  GraphMemory graphMemory;
  ContextAccount contexts;
  StreamAccount streams;
  LocalMemory localMemory;
  ReserveAccount reserves;
  HeldMemory held;
  std::atomic<std::uint64_t> linkInputBytes{0};  ///< of all links that are not destroyed
  std::atomic<bool> codeMayPrint{
      false};  ///< some code image that was loaded names the device's printf
  Gate gate{driver, figures.gateNanoseconds, captures};
  Timeline timeline{driver, streams};

  /// Forwards the driver's log of errors to the client (CUDA 12.9 and newer).
  void forwardDriverLog();

  /// Serves the client until it ends; returns how it ended, for the report. `serveChannel` is given
  /// the memory file of each new channel. When the client is gone, reads what it sent before.
  using ServeChannel = std::function<void(int channelFile, bool answersFaults)>;
  std::string serve(int clientPidfd, const ServeChannel& serveChannel);

  /// Ends the session, with `why` as the reason. The first reason counts. Any thread.
  void fail(const std::string& why);

  /// Whether the limit on handles is reached; reports it if so.
  bool handlesUsedUp();

  /// Reports that a limit of a context was not raised, because its memory cost is unknown.
  void reportUnknownLimit(CUlimit limit, std::uint64_t value);

  /// Reports that a stream may not capture, because of this error of the driver.
  void reportRefusedCapture(CUresult status);

  /// Charges pinned memory. If it does not fit, reports that and returns false.
  bool pinnedFits(std::uint64_t bytes);

  /// Starts polling the pools: a pool may release memory in stream order, without notification.
  void watchPools();

  /// Waits until no other thread uses the object, or one that ends with it. Call it right before
  /// the driver destroys the object.
  void awaitUnused(const Uses::Slot& own, const void* object);

  /// The context that holds what is taken while `context` is current: for a green context the
  /// primary one, null if that has ended.
  CUcontext ownerOf(CUcontext context) const;

  /// A context in which memory can be copied. Null if there is none, or if a fault has ended them.
  CUcontext copyContext() const;

  /// Refunds all that the context held.
  void contextEnded(CUcontext context);

  /// Ends the session: the arbiter reports that its work overran its window by `seconds` while
  /// others waited.
  void noteOverrun(std::uint32_t seconds);

  /// Functions or streams have ended: their addresses may be reused.
  void codeEnded() { codeChanges_.fetch_add(1, std::memory_order_release); }
  unsigned codeChanges() const { return codeChanges_.load(std::memory_order_acquire); }

  /// Records a sticky error of the driver, for the report.
  void noteFault(CUresult result);
  CUresult fault() const { return fault_.load(); }

 private:
  void reportOverQuota(std::uint64_t asked);
  bool receive(const ServeChannel& serveChannel);
  void drain(const ServeChannel& serveChannel);
  void wake();
  bool settlePools();
  void noteUnsupported(std::string_view call);
  void noteNotFound(std::string_view names, bool byRuntime);

  int wake_;    ///< eventfd: output is waiting, or the session has failed
  int failed_;  ///< eventfd: the session has failed
  std::mutex failMutex_;
  std::string failure_;
  std::atomic<CUresult> fault_{CUDA_SUCCESS};
  std::atomic<bool> poolsWatched_{false};
  std::atomic<unsigned> codeChanges_{0};
  RateLimit quotaRefused_;
  RateLimit handlesRefused_;
  RateLimit pinnedRefused_;
  RateLimit limitRefused_;
  RateLimit captureRefused_;
  ReportedNames unsupported_;
  ReportedNames notFound_;
};

}  // namespace worker
