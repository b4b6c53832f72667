// User objects: the worker has the destructor run here when the driver has no reference left.
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initialRefcount, unsigned int flags) {
  if (object_out == nullptr || destroy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuUserObjectCreate, 32, kOrdered)) return call.status();
  call.encoder().put(ptr);
  call.encoder().put(destroy);
  call.encoder().put(initialRefcount);
  call.encoder().put(flags);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  *object_out = handle<CUuserObject>(reply.get<std::uint64_t>());
  return reply.ok() ? CUDA_SUCCESS : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace interposer
