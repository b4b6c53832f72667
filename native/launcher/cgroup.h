// Where a process is put among the cgroups of the host, of the first and the second version.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace launcher {

/// One hierarchy that is mounted.
struct Hierarchy {
  std::string directory;
  std::string options;  ///< of the mount, with its controllers; empty for the second version
  bool unified;
};

/// One line of /proc/PID/cgroup.
struct Membership {
  std::string controllers;  ///< empty for the second version
  std::string path;
};

std::vector<Hierarchy> parseMounts(const std::string& text);
std::vector<Membership> parseMemberships(const std::string& text);

/// Whether the line is about this hierarchy.
bool matches(const Hierarchy& hierarchy, const Membership& membership);

/// The cgroup for workers of a pod: beneath the outermost component that names it, for the pod itself may make up those beneath, or, in a
/// hierarchy where the process is in no such, at the root.
std::string workerCgroup(const std::string& path, const std::string& podUid);

/// Puts `process` (0: this one) into the workers' cgroup of the pod that `client` is in, or into that of the node when `podUid` is empty.
/// What cannot be done is said; the rest is done.
std::vector<std::string> place(pid_t process, pid_t client, const std::string& podUid);

}  // namespace launcher
