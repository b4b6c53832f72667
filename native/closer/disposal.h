// Closes a client's connection on a thread that may block.
#pragma once

#include <cstddef>
#include <span>

namespace closer {

/// Installs the handler of the signal that interrupts a close. Call it once, before dispose().
void prepareInterrupts();

/// Closes the connection on a new thread. A non-empty `answer` is sent after the client's greeting,
/// within 5 s. Returns false if no thread is available, because too many block; then replace this
/// process.
bool dispose(int connection, std::span<const std::byte> answer);

}  // namespace closer
