// Receives bytes from a Unix socket together with file descriptors (SCM_RIGHTS).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

namespace wire {

struct Received {
  ssize_t bytes;  ///< as of recvmsg(): 0 at the end, -1 with errno set on an error
  bool whole;     ///< false if bytes of a packet or file descriptors did not fit, and were dropped
};

/// Receives what is there, up to `bytes`. `files` becomes the list of the file descriptors that
/// came with it, at most 8; they are close-on-exec, and the caller owns them. Goes on after a
/// signal.
Received receiveWithFiles(int socket, void* data, std::size_t bytes, std::vector<int>& files,
                          int flags = 0);

/// Closes all files but the first. Returns that one, or -1 if there is none.
int keepFirst(const std::vector<int>& files);

}  // namespace wire
