// The arguments of a call as text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interposer/trace/facts.h"

namespace interposer::trace {

struct Argument {
  std::string_view name;
  std::string value;
};

/// The name of a handle's object, or nothing.
using NameOf = std::function<std::string(wire::HandleKind kind, std::uint64_t handle)>;

/// Describes the arguments of a call. Follows pointers to constant things, and if the call
/// succeeded, to others. Memory that cannot be read is no error: the pointer is shown.
std::vector<Argument> describeArguments(const CallFacts& call, const std::uint64_t* arguments,
                                        bool succeeded, const NameOf& nameOf);

inline std::string_view textAt(std::uint32_t place) { return kText + place; }

}  // namespace interposer::trace
