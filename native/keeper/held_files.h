// Copies of the shared files of another process.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>

#include "native/keeper/shared_files.h"

namespace keeper {

class HeldFiles {
 public:
  /// Takes copies. Returns an error message, or an empty string. Requires the right to trace the
  /// process (ptrace).
  std::string take(pid_t process);

  /// Whether the process has the files itself: it has not put them down yet.
  bool areHeldBy(pid_t process) const;

  /// Whether the process of the client has ended.
  bool clientIsGone() const;

  /// Gives up the arenas: their content is in a file.
  void dropArenas();
  /// Puts a copy of `file` in the place of the arena with this inode number, which was given up.
  /// False if there was none.
  bool putArena(ino_t inode, int file);

  /// Hands all files to a parked process that has put them down. `answer` goes with them. Returns
  /// an error message, or an empty string once the process has them.
  std::string giveTo(pid_t process, int answer) const;

 private:
  std::string takeMapping(pid_t process, std::size_t index);
  std::string takeDescriptor(pid_t process, int pidfd, std::size_t index);
  bool sendAll(int door, int answer) const;

  SharedFiles shared_;
  std::array<int, 2 * SharedFiles::kMost> files_;
  std::array<ino_t, SharedFiles::kMost> arena_{};  ///< the inode number of an arena, or 0
};

}  // namespace keeper
