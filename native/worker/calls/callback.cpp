// Host functions and stream callbacks. The driver calls the worker on a driver thread; the worker
// has the client run the program's function.
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// One enqueued host function. Deletes itself after it has run, unless a graph holds it. So the
/// driver is asked whether the stream captures, also if no capture is known.
struct PendingCallback {
  Session& session;
  wire::Callback callback;
  bool captured = false;
};

void runPending(PendingCallback* pending) {
  Session& session = pending->session;
  session.callbacks.run(session.connection, session.output, pending->callback);
  if (!pending->captured) delete pending;
}

void runHostFunction(void* pending) { runPending(static_cast<PendingCallback*>(pending)); }

void runStreamCallback(CUstream, CUresult status, void* userData) {
  auto* pending = static_cast<PendingCallback*>(userData);
  pending->callback.status = status;
  runPending(pending);
}

/// Decodes a frame of either call: the stream, and two client addresses. Null on failure, with
/// `status` set.
PendingCallback* decode(Thread& thread, wire::Decoder& in, wire::CallbackKind kind,
                        CUstream& stream, CUresult& status) {
  wire::Callback callback{kind, CUDA_SUCCESS, 0, 0, in.get<std::uint64_t>(), 0};
  callback.function = in.get<std::uint64_t>();
  callback.userData = in.get<std::uint64_t>();
  status = in.finished() ? thread.find<CUstream>(callback.stream, &stream) : thread.refuseFrame();
  return status == CUDA_SUCCESS ? new PendingCallback{thread.session, callback} : nullptr;
}

CUresult ownedByDriver(CUresult status, PendingCallback* pending) {
  if (status != CUDA_SUCCESS) delete pending;
  return status;
}

}  // namespace

void runInClient(void* argument) {
  const auto [session, function, userData] = HostFunctions::instance().find(argument);
  session->callbacks.run(
      session->connection, session->output,
      {wire::CallbackKind::hostFunction, CUDA_SUCCESS, function, userData, 0, 0});
}

CUresult cuLaunchHostFunc(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  CUstream stream = nullptr;
  CUresult status = CUDA_SUCCESS;
  PendingCallback* pending = decode(thread, in, wire::CallbackKind::hostFunction, stream, status);
  if (pending == nullptr) return status;
  if (thread.session.captures.includes(stream)) {
    void* argument = HostFunctions::instance().argumentFor(
        thread.session, pending->callback.function, pending->callback.userData);
    delete pending;
    if (argument == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    return thread.driver.cuLaunchHostFunc(stream, runInClient, argument);
  }
  thread.awaitWindow(window, stream, 0, {});
  return ownedByDriver(thread.driver.cuLaunchHostFunc(stream, runHostFunction, pending), pending);
}

CUresult cuStreamAddCallback(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  CUstream stream = nullptr;
  CUresult status = CUDA_SUCCESS;
  PendingCallback* pending = decode(thread, in, wire::CallbackKind::streamCallback, stream, status);
  if (pending == nullptr) return status;
  pending->captured = thread.session.captures.includes(stream);
  thread.awaitWindow(window, stream, 0, {});
  return ownedByDriver(thread.driver.cuStreamAddCallback(stream, runStreamCallback, pending, 0),
                       pending);
}

}  // namespace worker
