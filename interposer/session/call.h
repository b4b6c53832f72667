// One call to the worker: begin, encode, then wait or enqueue. The generated code in namespace
// remote uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "call_numbers.h"
#include "cuda_abi.h"
#include "interposer/session/session.h"
#include "interposer/session/thread.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

namespace interposer {

/// An ordered call takes a ticket: the worker submits in the order in which the program's threads
/// called. Those that share have no order among themselves. kIfIdle: an ordered call that begin()
/// refuses with CUDA_ERROR_NOT_READY if something may run in the context at its place.
enum Order : std::uint8_t { kUnordered, kOrdered, kShared, kIfIdle };

class Call {
 public:
  Call() = default;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// False without a worker, or if an earlier call that did not wait has failed. Then the program
  /// gets status().
  bool begin(CallNumber number, std::size_t payloadBytes, Order order);

  wire::Encoder& encoder() { return encoder_; }
  CUresult status() const { return status_; }

  /// Sends and waits. On success `reply` holds what follows the status; it stays valid until the
  /// thread's next call. An error may be that of an earlier call that did not wait.
  CUresult wait(wire::Decoder& reply);

  /// Sends and returns at once; an error comes back with a later call. Waits when the call is not
  /// `plausible`, inside a Waiting scope, without a current context, during a capture, and after a
  /// fault: then the program needs the driver's answer at once.
  CUresult enqueue(bool plausible = true);

 private:
  CUresult publish(std::uint16_t flags);
  void noteReply();

  Thread* thread_ = nullptr;
  wire::ClientChannel* channel_ = nullptr;
  CallNumber number_{};
  /// Taken before the frame is written: the atomic increment waits for all earlier stores, and the
  /// worker polls the frame's first cache line meanwhile. 0: none, or published.
  std::uint64_t ticket_ = 0;
  bool shares_ = false;        ///< the ticket is shared
  std::uint64_t changes_ = 0;  ///< count of changes behind this call, if it is ordered
  CUresult status_ = CUDA_SUCCESS;
  wire::Encoder encoder_;
};

/// While it lives, the thread's calls wait for their replies: for a call whose arguments may be
/// invalid.
class Waiting {
 public:
  explicit Waiting(bool wanted = true) : wanted_(wanted) { Thread::current().waiting += wanted_; }
  ~Waiting() { Thread::current().waiting -= wanted_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  bool wanted_;
};

/// Handles travel as the numbers that the program sees.
template <class T>
T handle(std::uint64_t number) {
  return (T)number;
}
template <class T>
std::uint64_t number(T handle) {
  return (std::uint64_t)handle;
}
/// The program knows graphs that kernels launch by another value: interposer/graphs/exec.cpp.
std::uint64_t number(CUgraphExec exec);

/// Returns `result`, or the error of a program that has not called cuInit: for calls that the
/// driver always answers alike.
CUresult constant(CUresult result);

/// Returns CUDA_ERROR_NOT_SUPPORTED. Logs the call and the reason, and reports it to the worker,
/// once.
CUresult unsupported(const char* call, const char* why);

}  // namespace interposer
