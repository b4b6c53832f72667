// What one thread knows to be complete from its last replies, so that it need not ask again.
//
// Work of the session begins only with an ordered call (call.h), and only such a call records an
// event or destroys an object. So what was complete stays so until any thread makes an ordered
// call other than a query. Events of several processes are an exception: do not note them.
#pragma once

#include <array>
#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

class Completed {
 public:
  /// Time in ns for which an answer is repeated. A fault in another stream is noticed at the next
  /// question to the driver, which natively takes longer than this to learn of it.
  static constexpr std::uint64_t kRepeatNanoseconds = 50'000;

  /// The driver answered CUDA_SUCCESS for the event or stream in the context. `changes`: count of
  /// changes (submission_order.h) that the answer belongs to. `now`: monotonic time in ns.
  void note(CUcontext context, std::uint64_t object, std::uint64_t changes, std::uint64_t now) {
    place(object) = {context, object, changes, now + kRepeatNanoseconds};
  }
  /// Whether that answer may be repeated.
  bool holds(CUcontext context, std::uint64_t object, std::uint64_t changes,
             std::uint64_t now) const {
    return now < untilOf(answers_[indexOf(object)], context, object, changes);
  }

  /// A copy with the stream, which comes after all its work, has ended. Other than an answer to a
  /// query, that means that what the work printed has arrived.
  void noteEnded(CUcontext context, std::uint64_t stream, std::uint64_t changes,
                 std::uint64_t now) {
    ended_ = {context, stream, changes, now + kRepeatNanoseconds};
  }
  /// Until when a wait for the stream would return at once, as far as is known; 0: it may wait.
  std::uint64_t endedUntil(CUcontext context, std::uint64_t stream, std::uint64_t changes) const {
    return untilOf(ended_, context, stream, changes);
  }

  /// The thread has waited for the stream, which the driver may learn later (last_wait.h): until
  /// `until` at most.
  void noteWaited(CUcontext context, std::uint64_t stream, std::uint64_t changes,
                  std::uint64_t until) {
    waited_ = {context, stream, changes, until};
  }
  /// That time, if the count behind the thread's last call is that of this wait; otherwise 0.
  std::uint64_t waitedUntil(CUcontext context, std::uint64_t stream, std::uint64_t changes) const {
    return untilOf(waited_, context, stream, changes);
  }

  /// What runs besides copies with the legacy default stream that take no longer than their calls:
  /// kLegacy: only work in that stream; kQuiet: nothing that it waits for; kIdle: nothing in the
  /// context.
  enum Load { kBusy, kLegacy, kQuiet, kIdle };

  void noteLoad(CUcontext context, std::uint64_t changes, Load load) {
    load_ = load;
    loadContext_ = context;
    loadChanges_ = changes;
  }
  Load load(CUcontext context, std::uint64_t changes) const {
    return loadContext_ == context && loadChanges_ == changes ? load_ : kBusy;
  }

 private:
  struct Answer {
    CUcontext context = nullptr;
    std::uint64_t object = 0;
    std::uint64_t changes = 0;
    std::uint64_t until = 0;
  };
  static std::uint64_t untilOf(const Answer& answer, CUcontext context, std::uint64_t object,
                               std::uint64_t changes) {
    return answer.changes == changes && answer.object == object && answer.context == context
               ? answer.until
               : 0;
  }
  static std::size_t indexOf(std::uint64_t object) { return (object * 0x9e3779b97f4a7c15u) >> 61; }
  Answer& place(std::uint64_t object) { return answers_[indexOf(object)]; }

  std::array<Answer, 8> answers_{};
  Answer ended_;
  Answer waited_;
  Load load_ = kBusy;
  CUcontext loadContext_ = nullptr;
  std::uint64_t loadChanges_ = 0;
};

}  // namespace interposer
