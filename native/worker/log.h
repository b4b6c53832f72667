// The worker's own log: lines on file descriptor 2, which the proxy collects. Not through stderr, which belongs to the device.
#pragma once

namespace worker {

/// Programs can provoke a line with every call, and while no proxy lives nobody empties the file: beyond these nothing is written.
inline constexpr int kMostLines = 1000;

void log(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace worker
