#include "interposer/trace/demangled.h"

#include <cxxabi.h>

#include <cstdlib>

namespace interposer::trace {

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

}  // namespace interposer::trace
