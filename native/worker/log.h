// The worker's own log: lines on file descriptor 2, which the proxy collects. Not through stderr, which belongs to the device.
#pragma once

namespace worker {

void log(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace worker
