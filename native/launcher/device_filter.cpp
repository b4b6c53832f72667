#include "native/launcher/device_filter.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <system_error>
#include <utility>

namespace launcher {

namespace {

namespace fs = std::filesystem;

/// Several nodes may lead to one device.
using Modes = std::map<std::pair<unsigned, unsigned>, mode_t>;

void add(Modes& modes, const fs::path& file, mode_t more = 0) {
  struct stat about {};
  if (stat(file.c_str(), &about) == 0 && S_ISCHR(about.st_mode))
    modes[{major(about.st_rdev), minor(about.st_rdev)}] |= about.st_mode | more;
}

}  // namespace

Devices devicesIn(const std::vector<fs::path>& files, const std::vector<fs::path>& openable) {
  Modes modes;
  std::error_code none;
  for (const fs::path& file : files) {
    add(modes, file);
    for (const auto& entry : fs::recursive_directory_iterator(file, none)) add(modes, entry.path());
  }
  for (const fs::path& file : openable) add(modes, file, S_IROTH | S_IWOTH);
  Devices devices;
  for (const auto& [number, mode] : modes)
    devices.insert({number.first, number.second, (mode & (S_IRGRP | S_IROTH)) != 0,
                    (mode & (S_IWGRP | S_IWOTH)) != 0});
  return devices;
}

}  // namespace launcher
