// One call on its way to the worker: begin, encode, then wait or enqueue. What the generated code in namespace remote is made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "call_numbers.h"
#include "cuda_abi.h"
#include "interposer/session.h"
#include "interposer/thread.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

namespace interposer {

/// An ordered call takes a ticket: the worker submits in the order in which the program's threads called.
enum Order : bool { kUnordered, kOrdered };

class Call {
 public:
  Call() = default;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// False when there is nobody to ask, or when an earlier call that did not wait has failed: status() is what the program gets.
  bool begin(CallNumber number, std::size_t payloadBytes, Order order);

  wire::Encoder& encoder() { return encoder_; }
  CUresult status() const { return status_; }

  /// Sends and waits. On success `reply` holds what follows the status; it stays valid until the thread's next call.
  CUresult wait(wire::Decoder& reply);

  /// Sends and returns at once; an error comes back with a later call. Waits when the call is not `plausible`, inside a Waiting scope,
  /// without a current context, and once the session has seen a fault: then what the driver says is wanted now.
  CUresult enqueue(bool plausible = true);

 private:
  CUresult publish(std::uint16_t flags);

  Thread* thread_ = nullptr;
  wire::ClientChannel* channel_ = nullptr;
  CallNumber number_{};
  /// Taken before the frame is written: taking it waits for all earlier stores, and the worker, who watches the frame's first line, would
  /// take the line away meanwhile. 0: none, or published.
  std::uint64_t ticket_ = 0;
  CUresult status_ = CUDA_SUCCESS;
  wire::Encoder encoder_;
};

/// While it lives, the thread's calls wait for their answer: for a call whose arguments are not known to be right.
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

/// The worker asks the driver for nothing: answers CUDA_ERROR_NOT_SUPPORTED, and has the proxy's log name the call once.
CUresult unsupported(const char* call);

}  // namespace interposer
