// A program loaded into one context: its kernels as functions, its variables in the context's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/engine.h"

namespace simulator {

struct Context;
class Device;
struct Library;
struct Module;

/// What cuFuncSetAttribute or cuKernelSetAttribute changed.
class FunctionSettings {
 public:
  void set(CUfunction_attribute attribute, int value) {
    const std::lock_guard lock(mutex_);
    values_[attribute] = value;
  }
  std::optional<int> get(CUfunction_attribute attribute) const {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(attribute);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, int> values_;
};

/// A kernel of a library: independent of contexts.
struct Kernel {
  Library& library;
  const std::size_t index;
  const KernelInfo& info;
  std::vector<std::unique_ptr<FunctionSettings>> settings;  ///< by device ordinal
};

struct Function {
  Module& module;
  const std::size_t index;
  const KernelInfo& info;
  Kernel* kernel = nullptr;  ///< of the library that the module belongs to
  FunctionSettings settings;
};

struct Module {
  explicit Module(Context& context_) : context(context_) {}

  Context& context;
  std::shared_ptr<Library> library;  ///< set when it was loaded for one; the library unloads it
  int ptxVersion = 0;
  std::shared_ptr<Program> program;
  std::vector<std::uint64_t> variables;  ///< addresses, in the order of program->variables()
  std::vector<std::unique_ptr<Function>> functions;

  Function* find(std::string_view name) const;
  /// Index of a variable, -1 when there is none of that name.
  int variable(std::string_view name) const;
};

/// Gives the program's variables memory in the context and registers its functions.
CUresult load(Context& context, std::shared_ptr<Program> program, int ptxVersion, std::shared_ptr<Library> library,
              std::shared_ptr<Module>& module);
/// Makes its handles unknown and frees its variables; kernels that run keep the program itself.
void unload(Module& module);

/// The function that a handle means in the current context: a CUfunction, or a CUkernel, which is loaded there if need be. The pointer
/// keeps the module.
CUresult findFunction(Context& context, CUfunction handle, std::shared_ptr<Function>& function);

/// The value of an attribute as compiled; nothing for a number that names none.
std::optional<int> compiledAttribute(const KernelInfo& info, int ptxVersion, int attribute);
/// CUDA_ERROR_INVALID_VALUE when the attribute cannot be set, or not to that.
CUresult checkSetting(const KernelInfo& info, CUfunction_attribute attribute, int value);
/// The value that counts: as set on the function, else on the kernel for the function's device, else as compiled.
int effective(const Function& function, CUfunction_attribute attribute);
/// The architecture that the first text was written for (.target sm_75 gives 75), 0 when it does not say.
int ptxVersionOf(const std::vector<std::string>& texts);

}  // namespace simulator
