// Moves a process into a cgroup of the host, in cgroup v1 and v2.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

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
/// because the pod may have created those below. At the root if no component names it.
std::string workerCgroup(const std::string& path, const std::string& podUid);

/// Path of the cgroup that pays for the memory of a process, from its /proc/PID/cgroup: in the v1
/// hierarchy of memory, else in v2.
std::string memoryCgroup(const std::string& memberships);

/// Moves `process` (0: this one) into the workers' cgroup of the client's pod, or of the node if
/// `podUid` is empty. Returns messages for the hierarchies that failed; the others are done.
std::vector<std::string> place(pid_t process, pid_t client, const std::string& podUid);

}  // namespace launcher
