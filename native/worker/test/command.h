// Commands to a worker, as gpu-proxy sends them (native/worker/session/control.h).
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <span>
#include <string>

#include "test/unit/descriptors.h"

namespace worker::test {

/// Sends a command. Returns where its answer comes.
inline int sendCommand(int socket, const std::string& text) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const auto bytes = std::as_bytes(std::span(text));
  const ssize_t sent = unit::sendWithFiles(socket, bytes, std::span(&ends[1], 1));
  CHECK(sent == static_cast<ssize_t>(text.size()));
  close(ends[1]);
  return ends[0];
}

inline std::string awaitAnswer(int pipe) {
  char bytes[256];
  const ssize_t count = read(pipe, bytes, sizeof bytes);
  close(pipe);
  return {bytes, static_cast<std::size_t>(count)};
}

}  // namespace worker::test
