// Module: a program loaded into one context, with its kernels as functions and its variables in the
// context's memory.
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

/// Attributes set by cuFuncSetAttribute or cuKernelSetAttribute. Thread-safe.
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
  Kernel* kernel = nullptr;  ///< the kernel of the module's library; null without one
  FunctionSettings settings;
};

struct Module {
  explicit Module(Context& context_) : context(context_) {}

  Context& context;
  std::shared_ptr<Library> library;  ///< the library that it was loaded for, which unloads it
  int ptxVersion = 0;
  std::shared_ptr<Program> program;
  std::vector<std::uint64_t> variables;  ///< addresses, in the order of program->variables()
  std::vector<std::unique_ptr<Function>> functions;

  Function* find(std::string_view name) const;
  /// Index of the variable; -1 if there is none of that name.
  int variable(std::string_view name) const;
};

/// Compiles the texts of one program. `program` stays null on failure.
CompileError compileTexts(const std::vector<std::string>& texts, std::shared_ptr<Program>& program,
                          Externs externs = Externs::define);
/// Reads a file as an image, and appends a zero byte.
CUresult readFile(const char* name, std::vector<char>& bytes);

/// Allocates the program's variables in the context and registers its functions.
CUresult load(Context& context, std::shared_ptr<Program> program, int ptxVersion,
              std::shared_ptr<Library> library, std::shared_ptr<Module>& module);
/// Invalidates the module's handles and frees its variables. Running kernels keep the program.
void unload(Module& module);

/// Finds the function of a handle in the current context. The handle is a CUfunction, or a
/// CUkernel, which is loaded into the context if necessary. The pointer keeps the module.
CUresult findFunction(Context& context, CUfunction handle, std::shared_ptr<Function>& function);

/// The attribute's value as compiled; empty if the attribute does not exist.
std::optional<int> compiledAttribute(const KernelInfo& info, int ptxVersion, int attribute);
/// Returns CUDA_ERROR_INVALID_VALUE if the attribute cannot be set, or not to this value.
CUresult checkSetting(const KernelInfo& info, CUfunction_attribute attribute, int value);
/// The effective value: as set on the function, else on its kernel for the device, else as
/// compiled.
int effective(const Function& function, CUfunction_attribute attribute);
/// The architecture of the first text (.target sm_75 gives 75); 0 if it has none.
int ptxVersionOf(const std::vector<std::string>& texts);

}  // namespace simulator
