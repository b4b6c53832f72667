// The environment that the driver reads when it starts: the client's, narrowed to the GPUs of its allocation.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace worker {

/// Variables by name.
using Environment = std::map<std::string, std::string>;

/// The CUDA_ variables that the driver is to see; `variables` are the client's, NUL-terminated NAME=value. `ownCache`: the driver's JIT
/// cache lies where cache.h says.
Environment driverEnvironment(std::span<const std::byte> variables, const std::vector<std::string>& gpus, bool ownCache);

/// Replaces this process's CUDA_ variables.
void adopt(const Environment& environment);

/// Whether a driver does the same with both.
bool equivalent(const Environment& one, const Environment& other);

/// CUDA_VISIBLE_DEVICES for a client that sees only `gpus` (empty: all) and asks for `wanted` of them (null: all), as the driver reads it:
/// a list that ends at the first entry that names nothing.
std::string visibleDevices(const std::vector<std::string>& gpus, const char* wanted);

}  // namespace worker
