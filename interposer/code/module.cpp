#include "interposer/code/kernels.h"
#include "interposer/code/load.h"
#include "interposer/memory/managed_variables.h"
#include "interposer/session/call_hooks.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// Enqueues the unloading. CUDA_ERROR_NOT_READY: something may run in the context before it.
CUresult unloadIfIdle(CUmodule module) {
  Call call;
  if (!call.begin(CallNumber::cuModuleUnload, sizeof module, kIfIdle)) return call.status();
  call.encoder().put(number(module));
  const CUresult status = call.enqueue();
  Thread& thread = Thread::current();
  if (status == CUDA_SUCCESS)
    thread.completed.noteLoad(thread.context(), thread.changes, Completed::kIdle);
  return status;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t loaded = 0;
  const CUresult status =
      load(CallNumber::cuModuleLoadDataEx, image, {numOptions, options, optionValues}, loaded);
  if (status != CUDA_SUCCESS) return status;
  *module = handle<CUmodule>(loaded);
  addModule(*module);
  return CUDA_SUCCESS;
}

/// The driver waits until nothing runs in the context, then unloads the module. Here the program
/// waits with cuCtxSynchronize, so that its other threads can submit work meanwhile. Then the
/// unloading is enqueued. If other threads submit work again and again, the worker waits, and they
/// with it.
CUresult cuModuleUnload(CUmodule hmod) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  // Behind each wait, managed variables are fetched: then the context is not known to be idle.
  const int waits = callHooks.load(std::memory_order_acquire) == nullptr ? 3 : 1;
  const bool own =
      isModuleOf(hmod, Thread::current().context()) && !Session::current()->capturing();
  CUresult earlier = CUDA_SUCCESS;
  CUresult status = own ? unloadIfIdle(hmod) : CUDA_ERROR_NOT_READY;
  for (int i = 0; own && i < waits && status == CUDA_ERROR_NOT_READY; ++i) {
    earlier = interposer::cuCtxSynchronize();
    if (earlier != CUDA_SUCCESS) break;
    status = unloadIfIdle(hmod);
  }
  if (status == CUDA_ERROR_NOT_READY) {
    const Waiting waiting;
    status = remote::cuModuleUnload(hmod);
  }
  if (status != CUDA_SUCCESS) return status;
  forgetCode(number(hmod));
  return earlier;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return interposer::cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return interposer::cuModuleLoadDataEx(module, fatCubin, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string content;
  if (const CUresult status = readFile(fname, content); status != CUDA_SUCCESS) return status;
  return interposer::cuModuleLoadDataEx(module, content.data(), 0, nullptr, nullptr);
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  if (hfunc == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t found = 0;
  const CUresult status = getKernel(CallNumber::cuModuleGetFunction, number(hmod), name, found);
  if (status == CUDA_SUCCESS) *hfunc = handle<CUfunction>(found);
  return status;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
  if (functions == nullptr || numFunctions == 0) return CUDA_ERROR_INVALID_VALUE;
  return enumerateKernels(
      CallNumber::cuModuleEnumerateFunctions, number(mod), numFunctions,
      [&](unsigned i, const Kernel& kernel) { functions[i] = handle<CUfunction>(kernel.handle); });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const CUresult status = remote::cuModuleGetGlobal_v2(&address, &size, hmod, name);
      status != CUDA_SUCCESS)
    return status;
  Session::current()->deviceRanges.add(address, size, number(hmod));
  if (const CUresult status = mirrorIfManaged(address, size, number(hmod)); status != CUDA_SUCCESS)
    return status;
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

}  // namespace interposer
