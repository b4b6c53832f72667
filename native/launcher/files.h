// Files of procfs and cgroupfs, which are read whole and written in one call.
#pragma once

#include <string>

namespace launcher {

/// The file's content; empty if it cannot be read.
std::string readFile(const std::string& path);

/// Returns false and sets errno on failure.
bool writeFile(const std::string& path, const std::string& text);

}  // namespace launcher
