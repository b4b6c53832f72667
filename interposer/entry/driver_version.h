// The version of the node's driver: from the session, and before cuInit from the page that
// gpu-proxy publishes for NVML beside the socket (nvml/page.h describes it).
#pragma once

namespace interposer {

/// The version that a program is told, as cuDriverGetVersion numbers it; never above the one that
/// this library speaks. Without session and page it is that one.
int driverVersion();

/// What driverVersion() last returned to this thread: a runtime that asked before cuInit computes
/// its integrity check with that version.
int toldDriverVersion();

}  // namespace interposer
