// Host functions: the driver calls us back on a thread of its own, and we have the client call the program's function.
#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

void runPending(PendingCallback* pending) {
  pending->session.callbacks.run(pending->session, pending->callback);
  delete pending;
}

void runHostFunction(void* pending) { runPending(static_cast<PendingCallback*>(pending)); }

void runStreamCallback(CUstream, CUresult status, void* userData) {
  auto* pending = static_cast<PendingCallback*>(userData);
  pending->callback.status = status;
  runPending(pending);
}

/// Both frames are alike: the stream, and two addresses of the client.
PendingCallback* decode(Thread& thread, wire::Decoder& in, wire::CallbackKind kind, CUstream& stream, CUresult& status) {
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

CUresult cuLaunchHostFunc(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  CUstream stream = nullptr;
  CUresult status = CUDA_SUCCESS;
  PendingCallback* pending = decode(thread, in, wire::CallbackKind::hostFunction, stream, status);
  if (pending == nullptr) return status;
  return ownedByDriver(thread.driver.cuLaunchHostFunc(stream, runHostFunction, pending), pending);
}

CUresult cuStreamAddCallback(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  CUstream stream = nullptr;
  CUresult status = CUDA_SUCCESS;
  PendingCallback* pending = decode(thread, in, wire::CallbackKind::streamCallback, stream, status);
  if (pending == nullptr) return status;
  return ownedByDriver(thread.driver.cuStreamAddCallback(stream, runStreamCallback, pending, 0), pending);
}

}  // namespace worker
