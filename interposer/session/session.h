// The connection of this process to its worker: opened by cuInit, lost when either end dies,
// invalid in a forked child.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda_abi.h"
#include "interposer/memory/device_ranges.h"
#include "interposer/session/last_wait.h"
#include "interposer/session/stream_threads.h"
#include "interposer/session/submission_order.h"
#include "wire/address_window.h"
#include "wire/channel.h"
#include "wire/fault.h"
#include "wire/hello.h"
#include "wire/message.h"

namespace interposer {

/// Path of the proxy's socket.
const char* socketPath();

class Session {
 public:
  /// The session of this process; null before a successful cuInit and in a child whose parent had
  /// one.
  static Session* current();
  /// Result of cuInit: opens the session at the first call, repeats the first result afterwards.
  static CUresult open();
  /// CUDA_SUCCESS when a session is open; else the error that every call but cuInit gives:
  /// CUDA_ERROR_NOT_INITIALIZED (also in a forked child), CUDA_ERROR_NOT_PERMITTED inside a host
  /// function of a stream.
  static CUresult ready();

  std::span<const wire::DeviceInfo> devices() const { return devices_; }
  int driverVersion() const { return driverVersion_; }
  /// True when every call waits for its answer: NVIDIA_VIRTUAL_SYNCHRONOUS=1.
  bool synchronous() const { return synchronous_; }
  /// Whether the worker asks for a summary of the calls at the end.
  bool summarises() const { return summarises_; }

  /// /dev/userfaultfd, if the worker gives it; else -1.
  int faultDevice() const { return faultDevice_; }

  SubmissionOrder order;
  StreamThreads streamThreads;
  LastWait lastWait;
  wire::AddressWindow window;
  DeviceRanges deviceRanges;
  /// Whether all of wire::deviceRanges() are reserved, so that the program has no memory there.
  bool hasDeviceRanges() const { return hasDeviceRanges_; }

  /// Hands a memory file to the worker; the file stays the caller's. The id names it in a later
  /// frame.
  std::uint64_t sendMemory(int file);
  bool send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload,
            int file = -1);

  /// Creates a channel for a thread and hands it to the worker; null when the worker is gone.
  std::unique_ptr<wire::ClientChannel> openChannel(std::uint64_t id = 0);
  void forget(wire::ClientChannel* channel);

  /// Waits until `position` bytes of device output have been written to the program's streams.
  void awaitText(std::uint64_t position);

  bool lost() const { return lost_.load(std::memory_order_acquire); }

  /// Whether a call has returned an error that ends its context.
  bool faulted() const { return faulted_.load(std::memory_order_relaxed); }
  void noteFault() { faulted_.store(true, std::memory_order_relaxed); }

  /// Whether other processes may use memory of this one.
  bool exportsMemory() const { return exportsMemory_.load(std::memory_order_acquire); }
  void noteExport() { exportsMemory_.store(true, std::memory_order_release); }

  /// Whether a stream of this process may be capturing.
  bool capturing() const { return (captures_.load(std::memory_order_relaxed) & 0xffff'ffff) != 0; }
  /// Whether the driver would give the answer that it gave before, as far as that does not depend
  /// on what was asked.
  bool mayRepeat() const { return !lost() && !faulted() && !capturing() && !synchronous(); }
  /// Takes the worker's number of captures. The upper half counts the changes of that number.
  void noteCaptures(std::uint64_t state);

 private:
  CUresult connect();
  /// Connects to the proxy, also to one that is just being restarted: then it waits.
  bool reach(bool& waited);
  /// Greets again whenever the connection ends because the proxy ends before it has started a
  /// worker: then its successor is away at first. Once if it was not away.
  bool greetPatiently(const std::string& hello, wire::Message& reply);
  /// Says hello and waits for the welcome. False when the connection ended instead; then it is
  /// closed.
  bool greet(const std::string& hello, wire::Message& reply);
  CUresult takeWelcome(const wire::Message& reply);
  void receiveMessages();
  void receiveCallback(const wire::Message& message);
  void writeText(const wire::Message& message);
  void lose();

  int socket_ = -1;
  int faultDevice_ = -1;
  bool synchronous_ = false;
  bool hasDeviceRanges_ = false;
  bool summarises_ = false;
  int driverVersion_ = 0;
  std::vector<wire::DeviceInfo> devices_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> faulted_{false};
  std::atomic<bool> exportsMemory_{false};
  std::atomic<std::uint64_t> captures_{0};

  std::mutex sendMutex_;
  std::atomic<std::uint64_t> lastMemory_{0};

  std::mutex channelsMutex_;
  std::vector<wire::ClientChannel*> channels_;

  std::mutex textMutex_;
  std::condition_variable textWritten_;
  std::atomic<std::uint64_t> text_{0};
};

}  // namespace interposer
