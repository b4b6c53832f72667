// A library: an image without a context. It is compiled when its content is first queried, and
// loaded into a context at its first use there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "native/simulator/module.h"

namespace simulator {

struct Library : std::enable_shared_from_this<Library> {
  Library(std::vector<std::string> texts_, CompileError unreadable_)
      : texts(std::move(texts_)), unreadable(std::move(unreadable_)) {}

  const std::vector<std::string> texts;  ///< kept, because each context has its own program
  const CompileError unreadable;         ///< why the image has no texts
  std::mutex mutex;                      ///< guards the members below
  /// the program that describes the kernels; the first context that uses the library takes it
  std::shared_ptr<Program> program;
  bool programTaken = false;
  CUresult failed = CUDA_SUCCESS;  ///< error of the compilation
  std::vector<std::unique_ptr<Kernel>> kernels;
  /// managed variables, which all contexts share: index in the program -> address
  std::map<std::size_t, std::uint64_t> managed;
  std::map<std::uint64_t, std::shared_ptr<Module>> modules;  ///< by the context's id

  /// Compiles the library if that has not been done. The first failure is logged, because no call
  /// of the API returns its reason.
  CUresult compileOnce();
  Kernel* find(const std::string& name);
  /// Places the managed variables if that has not been done. Requires `mutex`. False without
  /// memory.
  bool placeManaged();
  /// Whether a context has loaded it. The driver waits for no work to unload another one (H200).
  bool isLoaded() {
    const std::lock_guard lock(mutex);
    return !modules.empty() || !managed.empty();
  }
};

CUresult moduleOf(Library& library, Context& context, std::shared_ptr<Module>& module);
CUresult functionOf(Kernel& kernel, Context& context, std::shared_ptr<Function>& function);
}  // namespace simulator
