// Refuses devices to the processes of a cgroup, in cgroup v1 and v2. A process may have a device
// node of any kind in a mount without MS_NODEV: a pod that may call mknod() can send it one.
#pragma once

#include <compare>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace launcher {

/// A character device, and how it may be opened.
struct Device {
  unsigned major;
  unsigned minor;
  bool readable;
  bool writable;
  auto operator<=>(const Device&) const = default;
};
using Devices = std::set<Device>;

/// The character devices among these files, and in those that are directories. They may be opened
/// as their modes permit to others than the owner. A node of nvidia-caps that only root may open
/// grants a right, such as to configure MIG.
/// @param openable further ones, which root may open
Devices devicesIn(const std::vector<std::filesystem::path>& files,
                  const std::vector<std::filesystem::path>& openable);

/// Permits only `devices` in a new or running cgroup of v1, in the hierarchy `devices`. Devices
/// that its parent refuses stay refused. Devices that it already permits stay permitted at all
/// times, unless it permits all. Can run in several processes at once.
/// @return an error message, or an empty string
std::string filterByList(const std::string& directory, const Devices& devices);

/// The same in a cgroup of v2, by a BPF program. Until the next filter, it remains attached.
std::string filterByProgram(const std::string& directory, const Devices& devices);

}  // namespace launcher
