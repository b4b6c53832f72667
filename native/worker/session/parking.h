// Makes this process one that a program such as CRIU can write to a file and make again: its
// threads stand still, and it has no file that others have too. A keeper (native/keeper/) holds
// these files meanwhile, and hands them back.
#pragma once

#include <cstdint>
#include <string>

#include "native/keeper/shared_files.h"

namespace worker {

/// For one thread at a time.
class Parking {
 public:
  /// Stops all other threads of the process, wherever they are; those of the driver that block all
  /// signals go on. From then on, no memory may be allocated: a stopped thread may hold the lock.
  /// False if they do not stop within two seconds: then all go on.
  bool stop();
  /// Lets them go on.
  void proceed();

  /// Executes commands from `commands` (control.h) until one of them, or the keeper, lets the
  /// process go on. Returns the descriptor for the answer to that. Only while the others are
  /// stopped.
  int await(int commands);

 private:
  bool prepare();
  bool stopAll(std::uint64_t deadline);
  void detach();
  bool attach(int& answer);
  void putBack(keeper::Index index, int file);
  bool obey(int commands, int& answer);

  keeper::SharedFiles shared_;
  bool detached_ = false;
  std::size_t back_ = 0;  ///< files that are back
};

}  // namespace worker
