#include "native/worker/calls/kernel_description.h"

#include <cstring>
#include <vector>

#include "native/worker/session/in_context.h"
#include "native/worker/session/own_question.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

constexpr std::size_t kMaxParameters = 4096;

struct Parameters {
  std::vector<Parameter> list;
  /// CUDA_SUCCESS if the parameters are known, else the driver's error
  CUresult status = CUDA_SUCCESS;
};

/// Asks for parameters until the driver answers CUDA_ERROR_INVALID_VALUE, which marks the end. Any
/// other error means that they are not known yet: kernels are loaded lazily, which needs a current
/// context.
template <class Ask>
Parameters parametersOf(Ask ask) {
  const OwnQuestion quiet;
  Parameters parameters;
  size_t offset = 0;
  size_t size = 0;
  while (parameters.list.size() < kMaxParameters &&
         (parameters.status = ask(parameters.list.size(), &offset, &size)) == CUDA_SUCCESS) {
    parameters.list.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
  if (parameters.status == CUDA_ERROR_INVALID_VALUE) parameters.status = CUDA_SUCCESS;
  return parameters;
}

CUresult encode(wire::Encoder& out, std::uint64_t handle, const char* name) {
  const std::size_t bytes = std::strlen(name) + 1;
  if (bytes > wire::kNameBytes) return CUDA_ERROR_NOT_SUPPORTED;
  out.put(handle);
  out.putBytes(name, bytes);
  return out.failed() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

template <class Ask>
CUresult describe(Thread& thread, wire::Encoder& out, CUresult named, Ask ask) {
  if (named != CUDA_SUCCESS) return named;
  const RelaxedCapture relaxed(thread.driver, thread.session.captures);
  const Parameters parameters = parametersOf(ask);
  out.put(parameters.status);
  out.putBytes(parameters.list.data(), parameters.list.size() * sizeof(Parameter));
  return out.failed() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace

CUresult name(Thread& thread, CUkernel kernel, std::uint64_t parent, wire::Encoder& out) {
  const char* name = nullptr;
  const CUresult status = thread.driver.cuKernelGetName(&name, kernel);
  if (status != CUDA_SUCCESS) return status;
  return encode(out, thread.add(wire::HandleKind::kernel, kernel, parent), name);
}

CUresult name(Thread& thread, CUfunction function, std::uint64_t parent, wire::Encoder& out) {
  const char* name = nullptr;
  const CUresult status = thread.driver.cuFuncGetName(&name, function);
  if (status != CUDA_SUCCESS) return status;
  return encode(out, thread.add(wire::HandleKind::function, function, parent), name);
}

CUresult describeKernel(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  const Driver& driver = thread.driver;
  // A launch into a stream needs no current context. The parameters are the same in all.
  const InSomeContext current(driver, thread.session.copyContext());
  CUkernel kernel = nullptr;
  if (thread.find<CUkernel>(handle, &kernel) == CUDA_SUCCESS)
    return describe(thread, out, name(thread, kernel, 0, out),
                    [&](size_t i, size_t* offset, size_t* size) {
                      return driver.cuKernelGetParamInfo(kernel, i, offset, size);
                    });
  CUfunction function = nullptr;
  if (const CUresult status = thread.find<CUfunction>(handle, &function); status != CUDA_SUCCESS)
    return status;
  return describe(thread, out, name(thread, function, 0, out),
                  [&](size_t i, size_t* offset, size_t* size) {
                    return driver.cuFuncGetParamInfo(function, i, offset, size);
                  });
}

}  // namespace worker
