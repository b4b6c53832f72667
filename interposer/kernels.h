// The kernels of this process (CUfunction and CUkernel alike): the layout of their parameters, and what the driver has answered about
// them once (kernel_answers.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "call_numbers.h"
#include "cuda_abi.h"
#include "interposer/kernel_answers.h"
#include "interposer/loaded_code.h"
#include "wire/decoder.h"

namespace interposer {

struct KernelParameter {
  std::uint32_t offset;
  std::uint32_t size;
};

struct Kernel {
  std::uint64_t handle = 0;
  std::string name;

  /// The layout of the parameters, asked for again where the driver could not tell it at first.
  CUresult parameters(const std::vector<KernelParameter>*& layout);
  std::uint32_t parameterBytes() const { return parameterBytes_; }
  void setParameters(std::span<const KernelParameter> layout);
  std::atomic<CUresult> whyUnknown{CUDA_SUCCESS};  ///< what the driver answered instead of a layout

  KernelAnswers answers;
  CUdevice device = 0;  ///< of a CUfunction, which is of one context: that which was current when it was found

  std::mutex mutex;                           ///< guards what follows
  std::map<CUcontext, CUfunction> functions;  ///< of a CUkernel: its function in each context

 private:
  std::atomic<bool> known_{false};  ///< whether the layout is set; it never changes then
  std::vector<KernelParameter> parameters_;
  std::uint32_t parameterBytes_ = 0;
};

/// The kernel of a handle; null when it is none. The thread keeps the record until it has found some others, also when the kernel is
/// unloaded: then it is still found, and the driver refuses it.
Kernel* findKernel(std::uint64_t handle);
inline Kernel* findKernel(CUfunction function) { return findKernel(reinterpret_cast<std::uint64_t>(function)); }
inline Kernel* findKernel(CUkernel kernel) { return findKernel(reinterpret_cast<std::uint64_t>(kernel)); }

/// Reads a kernel as the worker describes it (native/worker/calls/kernel_description.h) and registers it. Null when it does not parse.
std::shared_ptr<Kernel> readKernel(wire::Decoder& reply, CodeOwners owners);

/// A module that is loaded, or a library's.
void addModule(CUmodule module, std::uint64_t library = 0);
/// A module, a library or a context has ended: forgets all kernels, and the addresses of all variables, that went with it.
void forgetCode(std::uint64_t ended);

/// Asks for the kernel of a library or function of a module by its name; on success `found` is its handle.
CUresult getKernel(CallNumber call, std::uint64_t owner, const char* name, std::uint64_t& found);

/// Asks for the first `count` kernels of a library or functions of a module, and hands each to `found`.
CUresult enumerateKernels(CallNumber call, std::uint64_t owner, unsigned count, const std::function<void(unsigned, const Kernel&)>& found);

/// Held from when the driver is asked about a kernel, or an attribute is set, until what it said is noted: in that order.
std::mutex& verdicts();

/// A number that depends on the kernel's settings and the question alone. `ask` sets it, but only once.
template <class Ask>
CUresult remembered(Kernel& kernel, const KernelAnswers::Question& question, int* number, Ask ask) {
  if (kernel.answers.find(question, number)) return CUDA_SUCCESS;
  const std::lock_guard order(verdicts());
  if (const CUresult status = ask(); status != CUDA_SUCCESS) return status;
  kernel.answers.remember(question, *number);
  return CUDA_SUCCESS;
}

/// An attribute of one of the kernels of this name was set: a kernel and its functions share their attributes.
void noteSetting(const std::string& name, const Setting& setting);
/// Forgets everything said about all kernels: the context that it was true of has ended.
void forgetKernelAttributes();

}  // namespace interposer
