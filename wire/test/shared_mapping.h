// A worker's end made over the client's own mapping instead of a second one. ThreadSanitizer knows
// memory by its address, so only thus does it see both ends of a channel meet; and tests and
// fuzzers can write what a hostile client would.
#pragma once

#include <memory>

#include "wire/channel.h"
#include "wire/channel_memory.h"

namespace wire {

struct SharedMapping {
  std::unique_ptr<ClientChannel> client = ClientChannel::create();
  std::unique_ptr<WorkerChannel> worker{new WorkerChannel(client->memory_)};

  SharedMapping() = default;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping() { endWorker(); }

  void endWorker() {
    if (worker) worker->memory_ = nullptr;  // the client's to unmap
    worker.reset();
  }

  ChannelMemory& memory() { return *client->memory_; }
  /// Whether the worker's next() would wait.
  bool idle() { return memory().firstWord(worker->head_).load() == 0; }
};

}  // namespace wire
