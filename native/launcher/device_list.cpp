// Cgroup v1: the files devices.list, devices.deny and devices.allow of a cgroup.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>

#include "native/launcher/device_filter.h"
#include "native/launcher/files.h"

namespace launcher {

namespace {

/// The only line of a cgroup that permits all devices.
constexpr const char* kAll = "a *:* rwm";

/// Lines with one letter for the access, such as `c 1:3 r`.
using Rights = std::set<std::string>;

void add(Rights& rights, const std::string& device, const std::string& access) {
  for (const char letter : access) rights.insert(device + " " + letter);
}

Rights rightsOf(const Devices& devices) {
  Rights rights;
  for (const Device& device : devices) {
    const std::string name = std::to_string(device.major) + ":" + std::to_string(device.minor);
    if (device.readable) add(rights, "c " + name, "r");
    if (device.writable) add(rights, "c " + name, "w");
  }
  return rights;
}

/// The lines of devices.list, such as `c 1:3 rw`.
Rights parse(const std::string& list) {
  Rights rights;
  std::istringstream stream(list);
  for (std::string type, device, access; stream >> type >> device >> access;)
    add(rights, type + " " + device, access);
  return rights;
}

Rights without(const Rights& rights, const Rights& others) {
  Rights rest;
  std::ranges::set_difference(rights, others, std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

std::string filterByList(const std::string& directory, const Devices& devices) {
  const std::string list = directory + "/devices.list";
  const std::string deny = directory + "/devices.deny";
  const std::string failed = "cannot refuse devices to the cgroup " + directory + ": ";
  // Only root can open this file, so no other process can keep the lock.
  const int lock = open(deny.c_str(), O_WRONLY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) return failed + std::strerror(errno);
  const Rights wanted = rightsOf(devices);
  errno = 0;
  if (readFile(list).starts_with(kAll)) writeFile(deny, "a");
  for (const std::string& right : without(parse(readFile(list)), wanted)) writeFile(deny, right);
  const int error = errno;
  for (const std::string& right : without(wanted, parse(readFile(list))))
    writeFile(directory + "/devices.allow", right);
  const bool filtered = without(parse(readFile(list)), wanted).empty();
  close(lock);
  return filtered ? std::string() : failed + std::strerror(error);
}

}  // namespace launcher
