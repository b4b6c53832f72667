// The worker's command line, as the proxy writes it (gpu-proxy/src/workers/worker.ts).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/worker/accounts/limits.h"
#include "native/worker/driver/environment.h"

namespace worker {

struct Options {
  bool inventory = false;      ///< print the GPUs and exit
  bool presence = false;       ///< print which GPUs the driver sees and exit
  std::string processes;       ///< NVML's library: print who holds how much of the GPUs, and exit
  bool answers = false;        ///< with it: also what NVML answers about the GPUs
  bool xids = false;           ///< with it: also the Xids that NVML tells meanwhile
  unsigned watch = 0;          ///< milliseconds: repeat that until the reader is gone; 0: once
  bool warm = false;           ///< start the driver now, and wait to be told whom to serve
  std::string driver;          ///< what dlopen gets
  std::string simulatedState;  ///< where simulated GPUs keep what all processes hold; empty: this
                               ///< one has them for itself
  std::vector<std::string> gpus;  ///< indices or UUIDs; empty: all
  std::string quota;              ///< the quota file; empty: none
  unsigned quotaSlot = 0;
  std::string sharing;            ///< directory of what the allocation's workers share; empty: none
  std::uint64_t memoryLimit = 0;  ///< bytes; 0: none
  std::uint64_t contextCharge =
      0;  ///< bytes that the session's first context costs the quota; 0: the node provides for it
  std::string arbiter;        ///< socket of the arbiter of GPU time; empty: none
  std::string figures;        ///< the figures file; empty: none
  std::string cache;          ///< directory of the driver's JIT cache; empty: the driver's choice
  std::string allocations;    ///< directory of all allocations, which goes out of sight
                              ///< (confinement.h); empty: there is none
  std::optional<uid_t> uid;   ///< user and group to serve as
  bool summary = false;       ///< the client prints a summary of its calls and its work at its end
  bool movesManaged = false;  ///< the client gets /dev/userfaultfd, so that managed memory moves
  bool control = false;       ///< gpu-proxy sends commands on descriptor 6 (session/control.h)
  Places places;
  Mps mps;
  Limits limits;
  std::vector<std::string> unknown;  ///< names of options that are not known here
};

/// False, with a sentence, when the arguments are not those. Options that a newer proxy gives, and
/// this worker does not know, are passed over: programs that began with the libraries of an older
/// build get the worker of that build (gpu-proxy/src/host/installation.ts).
bool parse(int count, char** arguments, Options& options, std::string& sentence);

}  // namespace worker
