// User objects: the driver calls the worker when the last reference is gone, and the worker has the
// client run the program's destructor.
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

struct Destructor {
  Session& session;
  wire::Callback callback;
  std::uint64_t handle = 0;
};

void forget(Session& session, std::uint64_t handle) {
  session.userObjects.remove(handle);
  session.handles.remove(handle);
}

/// Called on any thread of the driver, also inside a call of the client. So it does not wait for
/// the destructor.
void destroyInClient(void* argument) {
  auto* destructor = static_cast<Destructor*>(argument);
  Session& session = destructor->session;
  forget(session, destructor->handle);
  session.callbacks.post(session.connection, destructor->callback);
  delete destructor;
}

std::uint64_t handleOf(const Thread& thread, CUuserObject object) {
  return thread.session.handles.handleOf(wire::HandleKind::userObject, object);
}

}  // namespace

CUresult cuUserObjectCreate(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  wire::Callback callback{wire::CallbackKind::hostFunction, CUDA_SUCCESS, 0, 0, 0, 0};
  callback.userData = in.get<std::uint64_t>();
  callback.function = in.get<std::uint64_t>();
  const auto references = in.get<unsigned>();
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* destructor = new Destructor{thread.session, callback};
  CUuserObject object = nullptr;
  const CUresult status =
      thread.driver.cuUserObjectCreate(&object, destructor, destroyInClient, references, flags);
  if (status != CUDA_SUCCESS) return delete destructor, status;
  // A former object may have had this address, whose destructor the driver has yet to call.
  forget(thread.session, handleOf(thread, object));
  destructor->handle = thread.add(wire::HandleKind::userObject, object);
  thread.session.userObjects.add(destructor->handle, references);
  out.put(destructor->handle);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(Thread& thread, CUuserObject object, unsigned int count) {
  const CUresult status = thread.driver.cuUserObjectRetain(object, count);
  if (status == CUDA_SUCCESS) thread.session.userObjects.retain(handleOf(thread, object), count);
  return status;
}

/// The driver leaves it undefined to release references that the program does not own.
CUresult cuUserObjectRelease(Thread& thread, CUuserObject object, unsigned int count) {
  if (!thread.session.userObjects.release(handleOf(thread, object), count))
    return CUDA_ERROR_INVALID_VALUE;
  return thread.driver.cuUserObjectRelease(object, count);
}

CUresult cuGraphRetainUserObject(Thread& thread, CUgraph graph, CUuserObject object,
                                 unsigned int count, unsigned int flags) {
  UserObjects& objects = thread.session.userObjects;
  const std::uint64_t handle = handleOf(thread, object);
  const bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;
  if (moves && !objects.release(handle, count)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuGraphRetainUserObject(graph, object, count, flags);
  if (moves && status != CUDA_SUCCESS) objects.retain(handle, count);
  return status;
}

}  // namespace worker
