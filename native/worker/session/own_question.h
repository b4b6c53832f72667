// Keeps errors that the worker itself provokes out of the program's log of errors.
#pragma once

namespace worker {

/// While it lives, the driver's messages about this thread's calls are not forwarded: the program
/// did not make these calls.
class OwnQuestion {
 public:
  OwnQuestion() { ++depth_; }
  ~OwnQuestion() { --depth_; }
  OwnQuestion(const OwnQuestion&) = delete;
  OwnQuestion& operator=(const OwnQuestion&) = delete;

  static bool isAsked() { return depth_ > 0; }

 private:
  static inline thread_local unsigned depth_ = 0;
};

}  // namespace worker
