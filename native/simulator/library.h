// A library: an image that belongs to no context. Its text is compiled when somebody first asks for what is in it, and loaded into a
// context when it is first used there.
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
  Library(std::vector<std::string> texts_, CompileError unreadable_) : texts(std::move(texts_)), unreadable(std::move(unreadable_)) {}

  const std::vector<std::string> texts;  ///< kept: each context has a program of its own
  const CompileError unreadable;         ///< why the image has no texts
  std::mutex mutex;                      ///< guards what follows
  std::shared_ptr<Program> program;      ///< of which the kernels tell; the first context to use the library gets it
  bool programTaken = false;
  CUresult failed = CUDA_SUCCESS;  ///< how compiling ended, if not well
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::map<std::uint64_t, std::shared_ptr<Module>> modules;  ///< by the context's id

  /// Compiles it unless that was done. The reason why it cannot be goes to the log the first time: no call of the API can tell it.
  CUresult compileOnce();
  Kernel* find(const std::string& name);
};

CompileError compileTexts(const std::vector<std::string>& texts, std::shared_ptr<Program>& program);
CUresult moduleOf(Library& library, Context& context, std::shared_ptr<Module>& module);
CUresult functionOf(Kernel& kernel, Context& context, std::shared_ptr<Function>& function);
/// Reads a whole file as an image, ended by a zero byte.
CUresult readFile(const char* name, std::vector<char>& bytes);

}  // namespace simulator
