// Attributes and parameters of functions and kernels. Frameworks query them often (67,152 times in
// 20 steps of a ResNet-50 training), so the driver's answers are cached until the program changes
// an attribute.
#include "interposer/code/kernels.h"
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/handle_table.h"

namespace interposer {

namespace {

/// Caches an attribute. `where`: the device of a kernel, or the context of a function.
template <class Ask>
CUresult rememberedAttribute(Kernel* kernel, CallNumber call, std::uint64_t where,
                             CUfunction_attribute attribute, int* value, Ask ask) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return unknownHandle();
  return remembered(
      *kernel, {static_cast<std::uint64_t>(call), where, static_cast<std::uint64_t>(attribute)},
      value, ask);
}

/// Waits for the driver's verdict unless it is cached. Frameworks often set a value that is already
/// set: that needs no call.
template <class Set>
CUresult setAttribute(Kernel* kernel, CUfunction_attribute attribute, CUdevice device, int value,
                      Set set) {
  if (kernel == nullptr) return unknownHandle();
  const Setting setting{kernel->handle, attribute, device, value};
  if (kernel->answers.isSet(setting)) return CUDA_SUCCESS;
  const std::lock_guard order(answersMutex());
  const Waiting waiting(!kernel->answers.wasSet(setting));
  if (const CUresult status = set(); status != CUDA_SUCCESS) return status;
  noteSetting(kernel->name, setting);
  return CUDA_SUCCESS;
}

CUresult parameterInfo(Kernel* kernel, size_t index, size_t* offset, size_t* size) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (kernel == nullptr) return unknownHandle();
  const std::vector<KernelParameter>* layout = nullptr;
  if (const CUresult status = kernel->parameters(layout); status != CUDA_SUCCESS) return status;
  if (offset == nullptr || index >= layout->size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = (*layout)[index].offset;
  if (size != nullptr) *size = (*layout)[index].size;
  return CUDA_SUCCESS;
}

bool isFunction(CUfunction function) {
  return wire::handleKind(number(function)) == wire::HandleKind::function;
}

/// A function has a device. For a kernel in its place, it is that of the current context.
CUresult deviceOf(CUfunction function, const Kernel* kernel, CUdevice* device) {
  if (kernel == nullptr || !isFunction(function)) return currentDevice(device);
  *device = kernel->device;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Kernel* const kernel = findKernel(hfunc);
  CUdevice device = 0;
  if (const CUresult status = deviceOf(hfunc, kernel, &device); status != CUDA_SUCCESS)
    return status;
  return rememberedAttribute(kernel, CallNumber::cuFuncGetAttribute,
                             number(Thread::current().context()), attrib, pi,
                             [&] { return remote::cuFuncGetAttribute(pi, attrib, hfunc); });
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Kernel* const kernel = findKernel(hfunc);
  CUdevice device = 0;
  if (const CUresult status = deviceOf(hfunc, kernel, &device); status != CUDA_SUCCESS)
    return status;
  return setAttribute(kernel, attrib, device, value,
                      [&] { return remote::cuFuncSetAttribute(hfunc, attrib, value); });
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  return rememberedAttribute(findKernel(kernel), CallNumber::cuKernelGetAttribute,
                             static_cast<std::uint64_t>(dev), attrib, pi,
                             [&] { return remote::cuKernelGetAttribute(pi, attrib, kernel, dev); });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  return setAttribute(findKernel(kernel), attrib, dev, val,
                      [&] { return remote::cuKernelSetAttribute(attrib, val, kernel, dev); });
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel* const record = findKernel(kernel);
  if (record == nullptr) return unknownHandle();
  const CUcontext context = Thread::current().context();
  {
    const std::lock_guard lock(record->mutex);
    if (const auto known = record->functions.find(context); known != record->functions.end())
      return *pFunc = known->second, CUDA_SUCCESS;
  }
  Call call;
  if (!call.begin(CallNumber::cuKernelGetFunction, 8, kOrdered)) return call.status();
  call.encoder().put(number(kernel));
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto function = readKernel(reply, {number(kernel), number(context)});
  if (function == nullptr) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const std::lock_guard lock(record->mutex);
  *pFunc = record->functions[context] = handle<CUfunction>(function->handle);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const Kernel* const kernel = findKernel(hfunc);
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return unknownHandle();
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  return isFunction(hfunc) ? interposer::cuKernelGetName(name, reinterpret_cast<CUkernel>(hfunc))
                           : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  return parameterInfo(findKernel(kernel), paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
  return parameterInfo(findKernel(func), paramIndex, paramOffset, paramSize);
}

}  // namespace interposer
