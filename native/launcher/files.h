// Files of the kernel, which are read whole and written at once.
#pragma once

#include <string>

namespace launcher {

/// Empty when it cannot be read.
std::string readFile(const std::string& path);

/// False with errno set.
bool writeFile(const std::string& path, const std::string& text);

}  // namespace launcher
