// The open files that a worker starts with, by contract with gpu-proxy/src/worker.ts.
#pragma once

namespace worker {

/// The client's connection, unread. Of a warm worker first the proxy's control socket.
inline constexpr int kConnection = 3;
/// The report: a pipe, or a file opened for append.
inline constexpr int kReport = 4;

}  // namespace worker
