#include "native/launcher/cgroup.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "native/launcher/files.h"

namespace launcher {

namespace {

// device-plugin/src/removal.ts removes those at the root.
constexpr const char* kName = "nvidia-virtual";  ///< below the cgroup of a pod
/// Workers without a pod. kNodeCgroup has no filter: nvidia-modprobe makes devices in it.
constexpr const char* kNodeWorkers = "/nvidia-virtual-workers";
constexpr const char* kNodeServices = "/nvidia-virtual-services";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// Sets a new cpuset of cgroup v1 to its parent's processors and memory nodes. It accepts no
/// process before.
void fillCpuset(const std::string& directory) {
  const std::string parent = directory.substr(0, directory.rfind('/'));
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    const std::string own = readFile(directory + file);
    if (own.find_first_not_of(" \n") == std::string::npos)
      writeFile(directory + file, readFile(parent + file));
  }
}

bool filtersDevices(const Hierarchy& hierarchy) {
  const std::vector<std::string> options = split(hierarchy.options, ',');
  return hierarchy.unified || std::ranges::find(options, "devices") != options.end();
}

/// Moves `process` into the cgroup, which it creates if missing. Returns an error message, or an
/// empty string.
/// @param devices of the filter that the cgroup gets first; null: none
std::string enter(const Hierarchy& hierarchy, const std::string& path, pid_t process,
                  const Devices* devices) {
  const std::string directory = hierarchy.directory + path;
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return "cannot make the cgroup " + directory + ": " + std::strerror(errno);
  if (!hierarchy.unified) fillCpuset(directory);
  if (devices != nullptr) {
    const auto filter = hierarchy.unified ? filterByProgram : filterByList;
    if (std::string problem = filter(directory, *devices); !problem.empty()) return problem;
  }
  if (writeFile(directory + "/cgroup.procs", std::to_string(process))) return {};
  return "cannot enter the cgroup " + directory + ": " + std::strerror(errno);
}

/// Whether a path component names the pod: `pod<UID>`, `...-pod<UID>.slice` of systemd, or
/// `...-pod<UID>.slice:cri-containerd:<id>`.
bool isPod(const std::string& component, const std::string& uid) {
  std::string escaped = uid;  // systemd escapes dashes in the names of slices
  std::ranges::replace(escaped, '-', '_');
  for (const std::string& name : {"pod" + uid, "pod" + escaped}) {
    const std::size_t at = component.find(name);
    if (at == std::string::npos || (at > 0 && component[at - 1] != '-')) continue;
    const std::string rest = component.substr(at + name.size());
    if (rest.empty() || rest == ".slice" || rest.starts_with(':') || rest.starts_with(".slice:"))
      return true;
  }
  return false;
}

/// Calls `body` with each mounted hierarchy of the memberships, and the path there.
template <class Body>
void forEach(const std::string& memberships, Body body) {
  const std::vector<Hierarchy> mounted = parseMounts(readFile("/proc/self/mounts"));
  for (const Membership& membership : parseMemberships(memberships)) {
    const auto found = std::ranges::find_if(
        mounted, [&](const Hierarchy& hierarchy) { return matches(hierarchy, membership); });
    if (found != mounted.end()) body(*found, membership.path);
  }
}

}  // namespace

std::vector<Hierarchy> parseMounts(const std::string& text) {
  std::vector<Hierarchy> found;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 4) continue;
    if (fields[2] == "cgroup2") found.push_back({fields[1], "", true});
    if (fields[2] == "cgroup") found.push_back({fields[1], fields[3], false});
  }
  return found;
}

std::vector<Membership> parseMemberships(const std::string& text) {
  std::vector<Membership> found;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
}

bool matches(const Hierarchy& hierarchy, const Membership& membership) {
  if (hierarchy.unified) return membership.controllers.empty();
  if (membership.controllers.empty()) return false;
  const std::vector<std::string> options = split(hierarchy.options, ',');
  const std::vector<std::string> controllers = split(membership.controllers, ',');
  return std::ranges::all_of(controllers, [&](const std::string& one) {
    return std::ranges::find(options, one) != options.end();
  });
}

std::string workerCgroup(const std::string& path, const std::string& podUid) {
  for (std::size_t begin = 1, end = 0; !podUid.empty() && begin < path.size(); begin = end + 1) {
    end = std::min(path.find('/', begin), path.size());
    if (isPod(path.substr(begin, end - begin), podUid)) return path.substr(0, end) + "/" + kName;
  }
  return {};
}

std::string memoryCgroup(const std::string& memberships) {
  std::string unified;
  for (const Membership& membership : parseMemberships(memberships)) {
    const std::vector<std::string> controllers = split(membership.controllers, ',');
    if (std::ranges::find(controllers, "memory") != controllers.end()) return membership.path;
    if (membership.controllers.empty()) unified = membership.path;
  }
  return unified;
}

namespace {

/// Moves `process` in each hierarchy into the first possible one of two cgroups: cgroupOf(path of
/// the hierarchy in `memberships`), if not empty, and `otherwise`.
template <class CgroupOf>
Placement filtered(pid_t process, const std::string& memberships, const Devices& devices,
                   CgroupOf cgroupOf, const std::string& otherwise) {
  Placement placement{{}, "the node has neither cgroup v2 nor the hierarchy devices of v1"};
  // The hierarchies of v1 come before v2, which then needs no filter of its own.
  forEach(memberships, [&](const Hierarchy& hierarchy, const std::string& path) {
    const bool filters = !placement.unfiltered.empty() && filtersDevices(hierarchy);
    for (const std::string& each : {cgroupOf(path), otherwise}) {
      if (each.empty()) continue;
      const std::string problem = enter(hierarchy, each, process, filters ? &devices : nullptr);
      if (!problem.empty()) placement.problems.push_back(problem);
      if (filters) placement.unfiltered = problem;
      if (problem.empty()) return;
    }
  });
  return placement;
}

}  // namespace

Placement placeWorker(pid_t process, pid_t client, const std::string& podUid,
                      const Devices& devices) {
  const std::string own = readFile("/proc/self/cgroup");
  const std::string theirs =
      podUid.empty() ? own : readFile("/proc/" + std::to_string(client) + "/cgroup");
  // The pod may be ending; leave at least the proxy's own cgroup.
  const auto ofPod = [&](const std::string& path) { return workerCgroup(path, podUid); };
  return filtered(process, theirs.empty() ? own : theirs, devices, ofPod, kNodeWorkers);
}

Placement placeService(const Devices& devices) {
  const auto none = [](const std::string&) { return std::string(); };
  return filtered(0, readFile("/proc/self/cgroup"), devices, none, kNodeServices);
}

std::vector<std::string> placeInNode() {
  std::vector<std::string> problems;
  forEach(readFile("/proc/self/cgroup"), [&](const Hierarchy& hierarchy, const std::string&) {
    const std::string problem = enter(hierarchy, kNodeCgroup, 0, nullptr);
    if (!problem.empty()) problems.push_back(problem);
  });
  return problems;
}

}  // namespace launcher
