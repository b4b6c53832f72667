// The worker's own log: lines on file descriptor 2, which the proxy collects. Not through stderr,
// which belongs to the device.
#pragma once

namespace worker {

/// Maximum lines of one session. A program can cause a line with every call, and without a proxy
/// the file is never emptied.
inline constexpr int kMostLines = 1000;

void log(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace worker
