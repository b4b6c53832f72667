// The environment that the driver reads when it starts: the client's, narrowed to the GPUs of its allocation.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace worker {

/// Replaces this process's CUDA_ variables by the client's; `variables` are NUL-terminated NAME=value.
void adoptEnvironment(std::span<const std::byte> variables, const std::vector<std::string>& gpus);

/// CUDA_VISIBLE_DEVICES for a client that sees only `gpus` (empty: all) and asks for `wanted` of them (null: all), as the driver reads it:
/// a list that ends at the first entry that names nothing.
std::string visibleDevices(const std::vector<std::string>& gpus, const char* wanted);

}  // namespace worker
