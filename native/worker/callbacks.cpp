#include "native/worker/callbacks.h"

#include "native/worker/session.h"

namespace worker {

void Callbacks::run(Session& session, wire::Callback callback) {
  session.output.send(session);
  callback.text = session.output.position();
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_;
  running_.insert(id);
  lock.unlock();
  const bool sent = session.send(wire::MessageKind::callback, id, std::as_bytes(std::span(&callback, 1)));
  lock.lock();
  if (!sent) running_.erase(id);
  finished_.wait(lock, [&] { return !running_.contains(id); });
}

void Callbacks::done(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  running_.erase(id);
  finished_.notify_all();
}

}  // namespace worker
