// Moves a process into a cgroup of the host, in cgroup v1 and v2. Those of workers and of what
// serves tenants have a filter of devices.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "native/launcher/device_filter.h"

namespace launcher {

/// A mounted cgroup hierarchy.
struct Hierarchy {
  std::string directory;
  std::string options;  ///< mount options with the controllers; empty for v2
  bool unified;
};

/// One line of /proc/PID/cgroup.
struct Membership {
  std::string controllers;  ///< empty for v2
  std::string path;
};

std::vector<Hierarchy> parseMounts(const std::string& text);
std::vector<Membership> parseMemberships(const std::string& text);

/// Whether the line belongs to this hierarchy.
bool matches(const Hierarchy& hierarchy, const Membership& membership);

/// Path of the cgroup for workers of a pod: below the outermost component that names the pod,
/// because the pod may have created those below. Empty if no component names it.
std::string workerCgroup(const std::string& path, const std::string& podUid);

/// Path of the cgroup that pays for the memory of a process, from its /proc/PID/cgroup: in the v1
/// hierarchy of memory, else in v2.
std::string memoryCgroup(const std::string& memberships);

/// Path of the cgroup of what belongs to the node and serves no tenant, such as memory.
inline constexpr const char* kNodeCgroup = "/nvidia-virtual";

struct Placement {
  std::vector<std::string> problems;  ///< of the hierarchies that failed; the others are done
  std::string unfiltered;             ///< why the process has no filter; empty: it has one
};

/// Moves `process` (0: this one) into the workers' cgroup of the client's pod. Without `podUid`, or
/// if that fails, into that of the node's workers.
/// @param devices that it may open. The cgroup has this filter before the process is in it.
Placement placeWorker(pid_t process, pid_t client, const std::string& podUid,
                      const Devices& devices);

/// Moves this process into the cgroup of what serves tenants, likewise.
Placement placeService(const Devices& devices);

/// Moves this process into the cgroup of the node. Returns messages as above.
std::vector<std::string> placeInNode();

}  // namespace launcher
