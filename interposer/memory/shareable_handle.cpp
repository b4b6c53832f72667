// Memory and pools by file descriptor. The program's descriptor is one end of a pair of sockets.
// The worker keeps the other end, and notices when all copies of the program's are closed. The name
// of the export waits in the socket, where a process that imports it peeks at it.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

using Name = std::array<std::byte, 64>;

struct Ends {
  int program = -1, worker = -1;
  Ends() {
    int made[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, made) != 0) return;
    program = made[0];
    worker = made[1];
  }
  ~Ends() {
    if (program >= 0) close(program);
    if (worker >= 0) close(worker);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
};

/// Writes a new descriptor of the object to `result`.
CUresult exportObject(CallNumber number, std::uint64_t object, void* result) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Ends ends;
  if (ends.worker < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::uint64_t file = Session::current()->sendMemory(ends.worker);
  if (file == 0) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Call call;
  if (!call.begin(number, 16, kOrdered)) return call.status();
  call.encoder().put(object);
  call.encoder().put(file);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto name = reply.get<Name>();
  if (send(ends.worker, name.data(), name.size(), MSG_NOSIGNAL) != sizeof name)
    return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(result, &ends.program, sizeof ends.program);
  ends.program = -1;
  return CUDA_SUCCESS;
}

/// Reads the name of an export. A handle that is a descriptor travels in the pointer itself.
bool peekName(void* handle, Name& name) {
  std::array<std::byte, sizeof name + 1> found;
  const auto file = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  if (recv(file, found.data(), found.size(), MSG_PEEK | MSG_DONTWAIT) != sizeof name) return false;
  std::memcpy(name.data(), found.data(), name.size());
  return true;
}

CUresult importObject(CallNumber number, CUmemAllocationHandleType type, void* handle,
                      std::uint64_t& object) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  Name name;
  if (!peekName(handle, name)) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(number, sizeof name, kOrdered)) return call.status();
  call.encoder().put(name);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  object = reply.get<std::uint64_t>();
  return CUDA_SUCCESS;
}

bool mayExport(const void* result, CUmemAllocationHandleType type, unsigned long long flags) {
  return result != nullptr && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && flags == 0;
}

}  // namespace

CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType,
                                      unsigned long long flags) {
  if (!mayExport(shareableHandle, handleType, flags)) return constant(CUDA_ERROR_INVALID_VALUE);
  return exportObject(CallNumber::cuMemExportToShareableHandle, handle, shareableHandle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  if (handle == nullptr) return constant(CUDA_ERROR_INVALID_VALUE);
  std::uint64_t object = 0;
  const CUresult status =
      importObject(CallNumber::cuMemImportFromShareableHandle, shHandleType, osHandle, object);
  if (status == CUDA_SUCCESS) *handle = object;
  return status;
}

CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType,
                                          unsigned long long flags) {
  if (!mayExport(handle_out, handleType, flags)) return constant(CUDA_ERROR_INVALID_VALUE);
  return exportObject(CallNumber::cuMemPoolExportToShareableHandle, number(pool), handle_out);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                            CUmemAllocationHandleType handleType,
                                            unsigned long long flags) {
  if (pool_out == nullptr || flags != 0) return constant(CUDA_ERROR_INVALID_VALUE);
  std::uint64_t object = 0;
  const CUresult status =
      importObject(CallNumber::cuMemPoolImportFromShareableHandle, handleType, handle, object);
  if (status == CUDA_SUCCESS) *pool_out = interposer::handle<CUmemoryPool>(object);
  return status;
}

}  // namespace interposer
