// The open files of a worker that have fixed numbers.
#pragma once

namespace worker {

/// The client's connection, unread. Of a warm worker first the proxy's control socket. By contract
/// with gpu-proxy/src/workers/worker.ts, as is the next.
inline constexpr int kConnection = 3;
/// The report: a pipe, or a file opened for append.
inline constexpr int kReport = 4;
/// Our own: where the driver's JIT cache is (cache.h).
inline constexpr int kCacheDirectory = 5;
/// The socket for commands, by contract with gpu-proxy too, if the option --control is given.
inline constexpr int kControl = 6;

}  // namespace worker
