#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

CUresult counted(Thread& thread, CUresult status) {
  if (status == CUDA_SUCCESS) count(thread.session.figures.memsets);
  return status;
}

}  // namespace

CUresult cuMemsetD8Async(Thread& thread, CUdeviceptr dstDevice, unsigned char uc, size_t N,
                         CUstream hStream) {
  return counted(thread, thread.driver.cuMemsetD8Async(dstDevice, uc, N, hStream));
}

CUresult cuMemsetD16Async(Thread& thread, CUdeviceptr dstDevice, unsigned short us, size_t N,
                          CUstream hStream) {
  return counted(thread, thread.driver.cuMemsetD16Async(dstDevice, us, N, hStream));
}

CUresult cuMemsetD32Async(Thread& thread, CUdeviceptr dstDevice, unsigned int ui, size_t N,
                          CUstream hStream) {
  return counted(thread, thread.driver.cuMemsetD32Async(dstDevice, ui, N, hStream));
}

CUresult cuMemsetD2D8Async(Thread& thread, CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                           size_t Width, size_t Height, CUstream hStream) {
  return counted(thread,
                 thread.driver.cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, hStream));
}

CUresult cuMemsetD2D16Async(Thread& thread, CUdeviceptr dstDevice, size_t dstPitch,
                            unsigned short us, size_t Width, size_t Height, CUstream hStream) {
  return counted(thread,
                 thread.driver.cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, hStream));
}

CUresult cuMemsetD2D32Async(Thread& thread, CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                            size_t Width, size_t Height, CUstream hStream) {
  return counted(thread,
                 thread.driver.cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, hStream));
}

}  // namespace worker
