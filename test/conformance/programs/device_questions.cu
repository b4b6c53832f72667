// Atomic operations to the host, flushes of remote writes, notifications, and old questions.
// conformance: flags=-lcuda
#include "show_driver.h"

static void notified(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}

int main() {
  CUcontext context = nullptr;
  unsigned capabilities[2] = {9, 9}, mask = 0;
  CUatomicOperation operations[2] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
  CUasyncCallbackHandle handle = nullptr;
  char luid[8];
  SHOW(cuInit(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
  std::printf("%x %x\n", capabilities[0], capabilities[1]);
  SHOW(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 0, 0));
  operations[0] = CU_ATOMIC_OPERATION_MAX;
  SHOW(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 1, 0));
  SHOW(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 0));
  SHOW(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  SHOW(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
  SHOW(cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(1),
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  SHOW(cuDeviceRegisterAsyncNotification(0, notified, nullptr, &handle));
  std::printf("a handle: %s\n", yesNo(handle != nullptr));
  SHOW(cuDeviceUnregisterAsyncNotification(0, handle));
  SHOW(cuDeviceUnregisterAsyncNotification(0, nullptr));
  SHOW(cuDeviceGetLuid(luid, &mask, 0));
}
