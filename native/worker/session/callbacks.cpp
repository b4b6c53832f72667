#include "native/worker/session/callbacks.h"

#include <cstddef>
#include <span>

namespace worker {

void Callbacks::run(Connection& connection, Output& output, wire::Callback callback) {
  output.send(connection);
  callback.text = output.position();
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_;
  running_.insert(id);
  lock.unlock();
  const bool sent =
      connection.send(wire::MessageKind::callback, id, std::as_bytes(std::span(&callback, 1)));
  lock.lock();
  if (!sent) running_.erase(id);
  finished_.wait(lock, [&] { return !running_.contains(id); });
}

void Callbacks::post(Connection& connection, const wire::Callback& callback) {
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_;
  lock.unlock();
  connection.send(wire::MessageKind::callback, id, std::as_bytes(std::span(&callback, 1)));
}

void Callbacks::done(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  running_.erase(id);
  finished_.notify_all();
}

}  // namespace worker
