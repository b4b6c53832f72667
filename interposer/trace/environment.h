// Whether a trace is wanted, by the program's environment.
#pragma once

namespace interposer::trace {

/// NVIDIA_VIRTUAL_TRACE; empty without it.
const char* filePath();
/// NVIDIA_VIRTUAL_SUMMARY is 1.
bool isSummaryWanted();
inline bool isWanted() { return *filePath() != '\0' || isSummaryWanted(); }

}  // namespace interposer::trace
