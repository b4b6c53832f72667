// Which processes hold how much memory of which GPU and how busy they keep it, as NVML knows it:
// what the quota's account and the GPU time that was granted are compared with.
#pragma once

#include "native/worker/options.h"

namespace worker {

/// Prints it as one JSON object, {"gpus":[{"uuid","processes":[{"pid","memory","busy"}]}]}: bytes,
/// and the microseconds in which kernels of the process ran since the line before.
/// With options.answers, each GPU also has its "memory" in bytes and NVML's answers ("constants",
/// "readings"), and the line has those of the "system" (answers.h).
/// With options.xids, each GPU also has the "xids" of the time since the line before
/// (xid_events.h).
/// options.processes names libnvidia-ml.so.1; with options.watch there is a line per interval, and
/// the function returns when the reader is gone. Returns the exit status.
int printDeviceProcesses(const Options& options);

}  // namespace worker
