#include "native/worker/calls/kernel_description.h"

#include <cstring>
#include <vector>

#include "native/worker/thread.h"

namespace worker {

namespace {

struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

constexpr std::size_t kMaxNameBytes = 4096;
constexpr std::size_t kMaxParameters = 4096;

/// Parameters are asked for until the driver says that there is no such one.
template <class Ask>
std::vector<Parameter> parametersOf(Ask ask) {
  std::vector<Parameter> parameters;
  size_t offset = 0;
  size_t size = 0;
  for (size_t i = 0; i < kMaxParameters && ask(i, &offset, &size) == CUDA_SUCCESS; ++i) {
    parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
  return parameters;
}

CUresult encode(wire::Encoder& out, std::uint64_t handle, const char* name, const std::vector<Parameter>& parameters) {
  const std::size_t bytes = std::strlen(name) + 1;
  if (bytes > kMaxNameBytes) return CUDA_ERROR_NOT_SUPPORTED;
  out.put(handle);
  out.putBytes(name, bytes);
  out.putBytes(parameters.data(), parameters.size() * sizeof(Parameter));
  return out.failed() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace

CUresult describe(Thread& thread, CUkernel kernel, std::uint64_t parent, wire::Encoder& out) {
  const Driver& driver = thread.driver;
  const char* name = nullptr;
  if (const CUresult status = driver.cuKernelGetName(&name, kernel); status != CUDA_SUCCESS) return status;
  const auto ask = [&](size_t i, size_t* offset, size_t* size) { return driver.cuKernelGetParamInfo(kernel, i, offset, size); };
  return encode(out, thread.add(wire::HandleKind::kernel, kernel, parent), name, parametersOf(ask));
}

CUresult describe(Thread& thread, CUfunction function, std::uint64_t parent, wire::Encoder& out) {
  const Driver& driver = thread.driver;
  const char* name = nullptr;
  if (const CUresult status = driver.cuFuncGetName(&name, function); status != CUDA_SUCCESS) return status;
  const auto ask = [&](size_t i, size_t* offset, size_t* size) { return driver.cuFuncGetParamInfo(function, i, offset, size); };
  return encode(out, thread.add(wire::HandleKind::function, function, parent), name, parametersOf(ask));
}

}  // namespace worker
