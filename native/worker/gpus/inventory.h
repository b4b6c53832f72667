// `nvidia-virtual-worker --inventory`: which GPUs the node has, and what a context on each holds
// before any allocation.
#pragma once

#include "native/worker/options.h"

namespace worker {

/// One line of JSON on stdout, {"gpus":[{"uuid","index","name","memory","contextMemory"}]}, with
/// sizes in bytes and the indices of nvidia-smi. Returns the exit status; a failure is a sentence
/// in the log.
int printInventory(const Options& options);

/// `nvidia-virtual-worker --presence`: {"gpus":[{"uuid"}]}, without a context, so that a full GPU
/// can be asked for too.
int printPresence(const Options& options);

}  // namespace worker
