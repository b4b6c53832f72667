// The kernels of this process (CUfunction and CUkernel): parameter layouts, and cached answers of
// the driver (kernel_answers.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
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
#include "interposer/code/kernel_answers.h"
#include "interposer/code/loaded_code.h"
#include "wire/decoder.h"

namespace interposer {

struct KernelParameter {
  std::uint32_t offset;
  std::uint32_t size;
};

/// State of a function for cuLaunch and cuLaunchGrid.
struct LegacyLaunch {
  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::vector<std::byte> arguments;
};

struct Kernel {
  std::uint64_t handle = 0;
  std::string name;

  /// The layout of the parameters, which the driver is asked for at first use: many kernels are
  /// found and never launched.
  CUresult parameters(const std::vector<KernelParameter>*& layout);
  std::uint32_t parameterBytes() const { return parameterBytes_; }

  KernelAnswers answers;
  CUdevice device =
      0;  ///< of a CUfunction, which is of one context: that which was current when it was found

  std::mutex mutex;                           ///< guards what follows
  std::map<CUcontext, CUfunction> functions;  ///< of a CUkernel: its function in each context
  LegacyLaunch legacyLaunch;

 private:
  void setParameters(std::span<const KernelParameter> layout);

  std::atomic<bool> known_{false};  ///< whether the layout is set; it never changes then
  std::vector<KernelParameter> parameters_;
  std::uint32_t parameterBytes_ = 0;
};

/// The kernel of a handle; null if there is none. The record lives until the calling thread has
/// looked up some other kernels, even if the kernel is unloaded. An unloaded kernel may still be
/// found; then the driver refuses it.
Kernel* findKernel(std::uint64_t handle);
inline Kernel* findKernel(CUfunction function) {
  return findKernel(reinterpret_cast<std::uint64_t>(function));
}
inline Kernel* findKernel(CUkernel kernel) {
  return findKernel(reinterpret_cast<std::uint64_t>(kernel));
}

/// Reads a kernel as the worker names it (native/worker/calls/kernel_description.h) and
/// registers it. Null when it does not parse.
std::shared_ptr<Kernel> readKernel(wire::Decoder& reply, CodeOwners owners);

/// Registers a module that the program loaded, or one of a library.
void addModule(CUmodule module, std::uint64_t library = 0);
/// Whether the program loaded the module into the context and has not unloaded it.
bool isModuleOf(CUmodule module, CUcontext context);
/// Forgets the kernels and variables of a module, library or context that has ended.
void forgetCode(std::uint64_t ended);

/// Queries the kernel of a library, or function of a module, by name; on success `found` is its
/// handle.
CUresult getKernel(CallNumber call, std::uint64_t owner, const char* name, std::uint64_t& found);

/// Queries the first `count` kernels of a library, or functions of a module, and calls `found` with
/// each.
CUresult enumerateKernels(CallNumber call, std::uint64_t owner, unsigned count,
                          const std::function<void(unsigned, const Kernel&)>& found);

/// Held while a query about a kernel, or a change of an attribute, is in flight. So answers are
/// cached in the order in which the driver gave them.
std::mutex& answersMutex();

/// A cached number that depends only on the kernel's settings and the question. Calls `ask` if it
/// is not cached.
template <class Ask>
CUresult remembered(Kernel& kernel, const KernelAnswers::Question& question, int* number, Ask ask) {
  if (kernel.answers.find(question, number)) return CUDA_SUCCESS;
  const std::lock_guard order(answersMutex());
  if (const CUresult status = ask(); status != CUDA_SUCCESS) return status;
  kernel.answers.remember(question, *number);
  return CUDA_SUCCESS;
}

/// Records that an attribute was set, for all kernels of this name: a kernel and its functions
/// share their attributes.
void noteSetting(const std::string& name, const Setting& setting);
/// Clears the caches of all kernels: a context has ended.
void forgetKernelAttributes();

}  // namespace interposer
