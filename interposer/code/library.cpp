#include <cstring>

#include "interposer/code/kernels.h"
#include "interposer/code/load.h"
#include "interposer/memory/managed_variables.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/handle_table.h"

namespace interposer {

CUresult getKernel(CallNumber number, std::uint64_t owner, const char* name, std::uint64_t& found) {
  Call call;
  const std::size_t nameBytes = std::strlen(name) + 1;
  if (nameBytes > wire::kNameBytes) return CUDA_ERROR_NOT_FOUND;
  if (!call.begin(number, 32 + nameBytes, kOrdered)) return call.status();
  call.encoder().put(owner);
  call.encoder().putBytes(name, nameBytes);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto kernel = readKernel(reply, {.code = owner});
  if (kernel == nullptr) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  found = kernel->handle;
  return CUDA_SUCCESS;
}

CUresult enumerateKernels(CallNumber call, std::uint64_t owner, unsigned count,
                          const std::function<void(unsigned, const Kernel&)>& found) {
  // In portions, so that the names of each fit into a reply.
  constexpr unsigned kPortion = 8;
  for (unsigned done = 0; done < count;) {
    Call portion;
    if (!portion.begin(call, 32, kOrdered)) return portion.status();
    portion.encoder().put(owner);
    portion.encoder().put<std::uint32_t>(done);
    portion.encoder().put<std::uint32_t>(std::min(kPortion, count - done));
    wire::Decoder reply;
    if (const CUresult status = portion.wait(reply); status != CUDA_SUCCESS) return status;
    const auto kernels = reply.get<std::uint32_t>();
    if (kernels == 0) return CUDA_SUCCESS;
    for (unsigned i = 0; i < kernels && done < count; ++i, ++done) {
      const auto kernel = readKernel(reply, {.code = owner});
      if (kernel == nullptr) return CUDA_ERROR_DEVICE_UNAVAILABLE;
      found(done, *kernel);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption*,
                           void**, unsigned int) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t loaded = 0;
  const CUresult status = load(CallNumber::cuLibraryLoadData, code,
                               {numJitOptions, jitOptions, jitOptionsValues}, loaded);
  if (status == CUDA_SUCCESS) *library = handle<CUlibrary>(loaded);
  return status;
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (library == nullptr || fileName == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string content;
  if (const CUresult status = readFile(fileName, content); status != CUDA_SUCCESS) return status;
  return interposer::cuLibraryLoadData(library, content.data(), jitOptions, jitOptionsValues,
                                       numJitOptions, libraryOptions, libraryOptionValues,
                                       numLibraryOptions);
}

CUresult cuLibraryUnload(CUlibrary library) {
  const CUresult status = remote::cuLibraryUnload(library);
  if (status == CUDA_SUCCESS) forgetCode(number(library));
  return status;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  const CUresult status = remote::cuLibraryGetModule(pMod, library);
  if (status == CUDA_SUCCESS) addModule(*pMod, number(library));
  return status;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t found = 0;
  const CUresult status = getKernel(CallNumber::cuLibraryGetKernel, number(library), name, found);
  if (status == CUDA_SUCCESS) *pKernel = handle<CUkernel>(found);
  return status;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  if (kernels == nullptr || numKernels == 0) return CUDA_ERROR_INVALID_VALUE;
  return enumerateKernels(
      CallNumber::cuLibraryEnumerateKernels, number(lib), numKernels,
      [&](unsigned i, const Kernel& kernel) { kernels[i] = handle<CUkernel>(kernel.handle); });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const CUresult status = remote::cuLibraryGetGlobal(&address, &size, library, name);
      status != CUDA_SUCCESS)
    return status;
  Session::current()->deviceRanges.add(address, size, number(library));
  if (const CUresult status = mirrorIfManaged(address, size, number(library));
      status != CUDA_SUCCESS)
    return status;
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

}  // namespace interposer
