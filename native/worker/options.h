// The worker's command line, as the proxy writes it (gpu-proxy/src/worker.ts).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace worker {

struct Options {
  std::string driver;  ///< what dlopen gets
  std::string quota;   ///< the quota file; empty: none
  unsigned quotaSlot = 0;
  std::uint64_t memoryLimit = 0;  ///< bytes; 0: none
  std::string arbiter;            ///< socket of the arbiter of GPU time; empty: none
  std::vector<std::string> gpus;  ///< indices or UUIDs; empty: all
};

/// False, with a sentence, when the arguments are not those.
bool parse(int count, char** arguments, Options& options, std::string& sentence);

}  // namespace worker
