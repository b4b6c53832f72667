// The environment that the driver reads when it starts: the client's, narrowed to the GPUs of its
// allocation, and what puts it under MPS.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace worker {

/// Variables by name.
using Environment = std::map<std::string, std::string>;

/// How a worker uses a GPU in concurrent mode, beside others under one MPS server.
struct Mps {
  std::string pipes;         ///< directory of the control daemon's pipes; empty: no MPS
  unsigned threads = 100;    ///< percent of the GPU's threads that the process may have
  std::uint64_t memory = 0;  ///< bytes of the GPU that it may have, with its contexts; 0: no limit
};

/// Where a session is that may move to other GPUs. UUIDs.
struct Places {
  std::string present;  ///< the GPU on which it starts; empty: the one that its program knows
  std::vector<std::string> others;  ///< GPUs to which it may move; empty: it stays
};

/// The CUDA_ variables that the driver is to see; `variables` are the client's, NUL-terminated
/// NAME=value, of which it gets those that docs/environment.md lists. `ownCache`: the driver's JIT
/// cache lies where cache.h says.
Environment driverEnvironment(std::span<const std::byte> variables,
                              const std::vector<std::string>& gpus, bool ownCache, const Mps& mps);

/// Lets the driver see the GPU on which the session starts as the first one, and those to which it
/// may move. Changes nothing for a session that stays, or whose program wants no GPU.
Environment placed(Environment environment, const Places& places);

/// Replaces this process's CUDA_ variables.
void adopt(const Environment& environment);

/// Whether it was the client's own choice to see none of `gpus`, by the variables that were adopted
/// from it; where they are not named, whether it chose at all.
bool hidesAll(const std::vector<std::string>& gpus);

/// Whether a driver does the same with both.
bool equivalent(const Environment& one, const Environment& other);

/// CUDA_VISIBLE_DEVICES for a client that sees only `gpus` (empty: all) and asks for `wanted` of
/// them (null: all), as the driver reads it: a list that ends at the first entry that names
/// nothing.
std::string visibleDevices(const std::vector<std::string>& gpus, const char* wanted);

}  // namespace worker
