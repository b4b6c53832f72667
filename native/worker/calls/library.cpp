// Libraries and modules: code images and their kernels.
#include <algorithm>
#include <vector>

#include "native/worker/calls/image.h"
#include "native/worker/calls/kernel_description.h"
#include "native/worker/reports/log.h"
#include "native/worker/session/thread.h"
#include "wire/copy.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Charges the image's code and variables, recorded under its handle, and the heap if its kernels
/// call malloc.
template <class Load>
CUresult loadCharged(Session& session, const VettedImage& image, JitOptions& options,
                     CUcontext owner, std::uint64_t& handle, Load load) {
  ImageAccount& account = session.images;
  const auto [bytes, mayPrint, mayAllocate] = image.facts();
  if (mayPrint) session.codeMayPrint = true;
  if (mayAllocate && !session.reserves.takeHeap()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!account.charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = load(image.pointer(), options, handle);
  if (status == CUDA_SUCCESS)
    account.remember(handle, bytes, owner);
  else
    account.refund(bytes);
  return status;
}

/// Common part of cuLibraryLoadData and cuModuleLoadDataEx, the only calls that load code. `load`
/// calls the driver and creates the handle. `owner`: the context that a module ends with; null for
/// a library.
template <class Load>
CUresult loadImage(Thread& thread, wire::Decoder& in, wire::Encoder& out, CUcontext owner,
                   Load load) {
  Image image;
  JitOptions options;
  if (!image.decode(thread, in) || !options.decode(in) || !in.finished())
    return thread.refuseFrame();
  const VettedImage* vetted = image.vetted();
  std::uint64_t handle = 0;
  CUresult status = vetted != nullptr ? vetted->status() : CUDA_ERROR_INVALID_IMAGE;
  if (!options.supported())
    status = CUDA_ERROR_NOT_SUPPORTED;
  else if (thread.full())
    status = CUDA_ERROR_OUT_OF_MEMORY;
  else if (status == CUDA_SUCCESS)
    thread.loadsCode(), status = loadCharged(thread.session, *vetted, options, owner, handle, load);
  thread.codeLoaded(handle);
  if (status != CUDA_SUCCESS && vetted != nullptr && *options.errors() == '\0')
    options.setErrors(vetted->sentence());
  if (status != CUDA_SUCCESS && *options.errors() != '\0')
    log("a code image does not load: %s", options.errors());
  out.put(handle);
  options.encodeLogs(out);
  return status;
}

/// Decodes a handle and a name, and finds the object of the handle.
template <class T>
CUresult decodeNamed(Thread& thread, wire::Decoder& in, std::uint64_t& handle, T& object,
                     const char*& name) {
  handle = in.get<std::uint64_t>();
  name = in.getString(wire::kNameBytes);
  if (!in.finished()) return thread.refuseFrame();
  return thread.find<T>(handle, &object);
}

/// Names `wanted` elements from `first` on. The driver can only list all of them at once.
template <class Owner, class Element>
CUresult enumerate(Thread& thread, wire::Decoder& in, wire::Encoder& out,
                   CUresult (*count)(unsigned*, Owner),
                   CUresult (*list)(Element*, unsigned, Owner)) {
  const auto handle = in.get<std::uint64_t>();
  const auto first = in.get<std::uint32_t>();
  const auto wanted = in.get<std::uint32_t>();
  if (!in.finished()) return thread.refuseFrame();
  Owner owner{};
  if (const CUresult status = thread.find<Owner>(handle, &owner); status != CUDA_SUCCESS)
    return status;
  if (count == nullptr || list == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  unsigned total = 0;
  if (const CUresult status = count(&total, owner); status != CUDA_SUCCESS) return status;
  std::vector<Element> elements(total);
  if (total > 0) {
    if (const CUresult status = list(elements.data(), total, owner); status != CUDA_SUCCESS)
      return status;
  }
  const unsigned portion = first < total ? std::min(wanted, total - first) : 0;
  out.put<std::uint32_t>(portion);
  for (unsigned i = 0; i < portion; ++i) {
    if (const CUresult status = worker::name(thread, elements[first + i], handle, out);
        status != CUDA_SUCCESS)
      return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLibraryLoadData(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return loadImage(
      thread, in, out, nullptr, [&](const void* code, JitOptions& options, std::uint64_t& handle) {
        CUlibrary library = nullptr;
        const CUresult status =
            thread.driver.cuLibraryLoadData(&library, code, options.options(), options.values(),
                                            options.count(), nullptr, nullptr, 0);
        if (status == CUDA_SUCCESS) handle = thread.add(wire::HandleKind::library, library);
        return status;
      });
}

CUresult cuLibraryUnload(Thread& thread, CUlibrary library) {
  const CUresult status = thread.driver.cuLibraryUnload(library);
  thread.session.codeEnded();
  if (status == CUDA_SUCCESS)
    thread.session.images.forget(thread.add(wire::HandleKind::library, library));
  thread.session.held.imageEnded();
  return status;
}

CUresult cuLibraryGetKernel(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  std::uint64_t handle = 0;
  CUlibrary library = nullptr;
  const char* name = nullptr;
  if (const CUresult status = decodeNamed(thread, in, handle, library, name);
      status != CUDA_SUCCESS)
    return status;
  CUkernel kernel = nullptr;
  if (const CUresult status = thread.driver.cuLibraryGetKernel(&kernel, library, name);
      status != CUDA_SUCCESS)
    return status;
  return worker::name(thread, kernel, handle, out);
}

CUresult cuLibraryEnumerateKernels(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return enumerate<CUlibrary, CUkernel>(thread, in, out, thread.driver.cuLibraryGetKernelCount,
                                        thread.driver.cuLibraryEnumerateKernels);
}

CUresult cuKernelGetFunction(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUkernel kernel = nullptr;
  if (const CUresult status = thread.find<CUkernel>(handle, &kernel); status != CUDA_SUCCESS)
    return status;
  CUfunction function = nullptr;
  if (const CUresult status = thread.driver.cuKernelGetFunction(&function, kernel);
      status != CUDA_SUCCESS)
    return status;
  return worker::name(thread, function, handle, out);
}

CUresult cuModuleLoadDataEx(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return loadImage(thread, in, out, thread.owner(),
                   [&](const void* code, JitOptions& options, std::uint64_t& handle) {
                     CUmodule module = nullptr;
                     const CUresult status = thread.driver.cuModuleLoadDataEx(
                         &module, code, options.count(), options.options(), options.values());
                     if (status == CUDA_SUCCESS)
                       handle = thread.add(wire::HandleKind::module, module);
                     return status;
                   });
}

CUresult cuModuleUnload(Thread& thread, CUmodule hmod) {
  const CUresult status = thread.driver.cuModuleUnload(hmod);
  thread.session.codeEnded();
  if (status == CUDA_SUCCESS)
    thread.session.images.forget(thread.add(wire::HandleKind::module, hmod));
  thread.session.held.imageEnded();
  return status;
}

CUresult cuModuleGetFunction(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  std::uint64_t handle = 0;
  CUmodule module = nullptr;
  const char* name = nullptr;
  if (const CUresult status = decodeNamed(thread, in, handle, module, name); status != CUDA_SUCCESS)
    return status;
  CUfunction function = nullptr;
  if (const CUresult status = thread.driver.cuModuleGetFunction(&function, module, name);
      status != CUDA_SUCCESS)
    return status;
  return worker::name(thread, function, handle, out);
}

CUresult cuModuleEnumerateFunctions(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return enumerate<CUmodule, CUfunction>(thread, in, out, thread.driver.cuModuleGetFunctionCount,
                                         thread.driver.cuModuleEnumerateFunctions);
}

/// Sends the variable's address, and its content from an offset on: the program may read it before
/// any context exists. Like every program, the worker may read managed memory at its address.
CUresult cuLibraryGetManaged(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto offset = in.get<std::uint64_t>();
  const char* name = in.getString(wire::kNameBytes);
  if (!in.finished()) return thread.refuseFrame();
  CUlibrary library = nullptr;
  if (const CUresult status = thread.find<CUlibrary>(handle, &library); status != CUDA_SUCCESS)
    return status;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult status = thread.driver.cuLibraryGetManaged(&address, &bytes, library, name);
  if (status != CUDA_SUCCESS) return status;
  if (offset > bytes) return CUDA_ERROR_INVALID_VALUE;
  out.put(address);
  out.put<std::uint64_t>(bytes);
  out.putBytes(reinterpret_cast<const std::byte*>(address) + offset,
               std::min<std::uint64_t>(bytes - offset, wire::kInlineCopyBytes));
  return CUDA_SUCCESS;
}

}  // namespace worker
