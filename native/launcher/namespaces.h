// The room of a process that runs: entered by CRIU, which writes the process to files.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>

namespace launcher {

class Namespaces {
 public:
  /// Those of the process in which it differs from its parent: mounts, network, System V IPC, and
  /// host name. Call it while /proc shows the process. An error message, or an empty string.
  std::string open(pid_t process);
  /// Moves this process, which must have one thread, into them. An error message, or an empty
  /// string.
  std::string enter() const;

 private:
  std::array<int, 4> files_{-1, -1, -1, -1};
};

/// What CRIU knows about the kernel. It keeps that in /run, and cannot find it out in a room.
class KernelData {
 public:
  /// Reads it from the directory in which CRIU has written it. Nothing, if it is not there.
  explicit KernelData(const std::string& directory);
  /// Writes it into the room that was entered. An error message, or an empty string.
  std::string write() const;

 private:
  std::string content_;
};

/// Shows the directory as /run, in mounts of this process only. An error message, or an empty
/// string.
std::string showAsRun(const char* directory);

/// This process is in no supplementary group: CRIU gives a process that had none those of its own.
/// An error message, or an empty string.
std::string leaveGroups();

/// Sets the real user and group, and no other. Then this process may ask for the limits of
/// processes of that user without the capability SYS_RESOURCE. An error message, or an empty
/// string.
std::string becomeReally(uid_t user);

}  // namespace launcher
