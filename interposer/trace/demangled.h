#pragma once

#include <string>

namespace interposer::trace {

/// The name of a kernel as written in C++, such as `add(float*, int)`; other names as they are.
std::string demangled(const std::string& name);

}  // namespace interposer::trace
