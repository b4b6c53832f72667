// Room: the part of the host that a worker sees. It has the files it needs, no sockets of other
// processes, and no network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace launcher {

struct Room {
  /// Paths besides the loader's directories. For a file, its directory and that of its link target
  /// are shown. Missing paths are skipped.
  std::vector<std::string> readable;
  std::vector<std::string> writable;  ///< files and directories; missing ones are skipped
  std::string devices = "/dev";       ///< directory of NVIDIA's devices
  /// Further devices, which the worker opens while it is root. Missing ones are skipped.
  std::vector<std::filesystem::path> openable;
  /// A writable directory, in whose place the room has another one of them, or nothing. Empty: none
  std::string hidden;
  std::string shown;
};

/// The device nodes of every room and the directories with such, as the host has them.
/// @param directory of NVIDIA's devices
std::vector<std::filesystem::path> deviceFiles(const std::string& directory);

/// Moves this process, which must have one thread, into new namespaces for mounts, network and
/// System V IPC. The root is a small tmpfs with the paths of `room` under their names on the host;
/// it ends with the process. Later mounts of the host are not visible; its unmounts apply here too.
/// Standard descriptors that are /dev/null are that of the room then.
/// @return an error message, or an empty string; after an error the process must not continue.
std::string enter(const Room& room);

}  // namespace launcher
