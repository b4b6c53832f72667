// Names: what each module declares, exports and takes from others.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/warp.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/runtime/builtins.h"
#include "native/simulator/ptx/runtime/grid_groups.h"
#include "native/simulator/ptx/syntax/failure.h"
#include "native/simulator/ptx/syntax/parser.h"

namespace simulator::ptx {
namespace {

/// The programs of the process by the addresses of their functions. An address is never given
/// twice.
class Programs {
 public:
  static Programs& all() {
    static auto* const programs = new Programs;
    return *programs;
  }
  std::uint64_t add(const LinkedProgram& program, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t first = next_;
    next_ += bytes;
    programs_.emplace(first, &program);
    return first;
  }
  void remove(std::uint64_t first) {
    const std::lock_guard lock(mutex_);
    programs_.erase(first);
  }
  const LinkedProgram* at(std::uint64_t address) const {
    const std::shared_lock lock(mutex_);
    const auto behind = programs_.upper_bound(address);
    return behind == programs_.begin() ? nullptr : std::prev(behind)->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, const LinkedProgram*> programs_;
  std::uint64_t next_ = kCodeWindow + 4096;
};

/// The names that a module exports and that no other one replaces.
std::vector<std::string> strongNames(const Module& module) {
  std::vector<std::string> names;
  for (const Variable& variable : module.variables) {
    if (variable.linkage == Linkage::Visible) names.emplace_back(variable.name);
  }
  for (const Function& function : module.functions) {
    const bool exported = function.entry || function.linkage == Linkage::Visible;
    if (function.defined && exported && function.linkage != Linkage::Weak)
      names.emplace_back(function.name);
  }
  return names;
}

bool isWeak(const Variable& variable) {
  return variable.linkage == Linkage::Weak || variable.linkage == Linkage::Common;
}

}  // namespace

LinkedProgram::LinkedProgram(std::span<const std::string_view> texts, Externs externs) {
  texts_.reserve(texts.size() + 1);
  texts_.assign(texts.begin(), texts.end());
  for (const std::string& text : texts_) modules_.push_back(parse(text));
  if (const std::string_view more = gridGroups(modules_); !more.empty())
    modules_.push_back(parse(texts_.emplace_back(more)));
  local_.resize(modules_.size());
  for (std::uint32_t module = 0; module < modules_.size(); ++module) declare(module);
  if (externs == Externs::define && texts.size() == 1) defineExterns();
  lowerAll();
  layOutShared();
  describeKernels();
  firstAddress_ = Programs::all().add(*this, (codes_.size() + 1) * kCodeBytes);
}

Symbol LinkedProgram::resolve(std::uint32_t module, std::string_view name) const {
  if (const auto found = local_[module].find(name); found != local_[module].end())
    return found->second;
  if (const auto found = exports_.find(name); found != exports_.end()) return found->second;
  if (const auto alias = modules_[module].aliases.find(name);
      alias != modules_[module].aliases.end())
    return resolve(module, alias->second);
  return {};
}

Symbol LinkedProgram::newVariable(const Variable& variable) {
  variables_.push_back({std::string(variable.name), variable.bytes(), variable.alignment,
                        variable.space == Space::Const, variable.type == Type::Opaque,
                        variable.managed});
  addresses_.push_back(0);
  initials_.push_back({&variable, declaring_});
  weak_.push_back(isWeak(variable));
  return {Symbol::Kind::Variable, static_cast<std::uint32_t>(variables_.size() - 1)};
}

Symbol LinkedProgram::addBodyVariable(const Variable& variable) {
  if (variable.space != Space::Shared) return newVariable(variable);
  if (variable.unsized) return {Symbol::Kind::DynamicShared, 0};
  shared_.push_back({variable.bytes(), variable.alignment, isWeak(variable), false, 0});
  return {Symbol::Kind::Shared, static_cast<std::uint32_t>(shared_.size() - 1)};
}

bool LinkedProgram::mayBeReplaced(const Symbol& symbol) const {
  if (symbol.kind == Symbol::Kind::Shared) return shared_[symbol.index].weak;
  return symbol.kind == Symbol::Kind::Variable && weak_[symbol.index];
}

void LinkedProgram::replace(const Symbol& symbol, const Variable& variable, std::uint32_t module) {
  if (symbol.kind == Symbol::Kind::Shared) {
    SharedVariable& shared = shared_[symbol.index];
    shared.size = std::max(shared.size, variable.bytes());
    shared.weak = false;
    return;
  }
  variables_[symbol.index].size = std::max(variables_[symbol.index].size, variable.bytes());
  initials_[symbol.index] = {&variable, module};
  weak_[symbol.index] = false;
}

void LinkedProgram::declareVariable(std::uint32_t module, const Variable& variable) {
  const bool dynamic = variable.space == Space::Shared && variable.unsized;
  if (dynamic || variable.linkage == Linkage::Internal) {
    local_[module][variable.name] = addBodyVariable(variable);
    return;
  }
  if (variable.linkage == Linkage::Extern) return;  // found among the exports when it is used
  const auto known = exports_.find(variable.name);
  if (known == exports_.end()) {
    exports_[variable.name] = addBodyVariable(variable);
    return;
  }
  if (isWeak(variable)) return;
  const bool shared = variable.space == Space::Shared;
  if (!mayBeReplaced(known->second) || shared != (known->second.kind == Symbol::Kind::Shared))
    throw DefinedAgain(variable.line, variable.name);
  replace(known->second, variable, module);
}

void LinkedProgram::declareFunction(std::uint32_t module, const Function& function) {
  if (!function.defined) return;
  const bool internal = function.linkage == Linkage::Internal && !function.entry;
  const auto made = static_cast<std::uint32_t>(functionNames_.size());
  if (!internal && exports_.contains(function.name)) {
    if (function.linkage == Linkage::Weak) return;
    const std::uint32_t before = exports_[function.name].index;
    if (exports_[function.name].kind != Symbol::Kind::Function ||
        definitions_[before]->linkage != Linkage::Weak) {
      throw DefinedAgain(function.line, function.name);
    }
    definitions_[before] = &function;
    definedIn_[before] = module;
    return;
  }
  functionNames_.emplace_back(function.name);
  definitions_.push_back(&function);
  definedIn_.push_back(module);
  (internal ? local_[module] : exports_)[function.name] = {Symbol::Kind::Function, made};
  if (function.entry) kernelFunctions_.push_back(made);
}

void LinkedProgram::declare(std::uint32_t module) {
  declaring_ = module;
  for (const Variable& variable : modules_[module].variables) declareVariable(module, variable);
  for (const Function& function : modules_[module].functions) declareFunction(module, function);
}

void LinkedProgram::defineExterns() {
  declaring_ = 0;
  for (const Variable& variable : modules_[0].variables) {
    const bool sized = variable.linkage == Linkage::Extern && !variable.unsized;
    if (!sized || resolve(0, variable.name).kind != Symbol::Kind::None) continue;
    exports_[variable.name] = addBodyVariable(variable);
  }
}

const Code* LinkedProgram::codeAt(std::uint64_t address) {
  const LinkedProgram* program = Programs::all().at(address);
  if (program == nullptr) return nullptr;
  const std::uint64_t number = (address - program->firstAddress_) / kCodeBytes;
  const bool exact =
      (address - program->firstAddress_) % kCodeBytes == 0 && number < program->codes_.size();
  return exact ? program->codes_[number].get() : nullptr;
}

std::pair<const LinkedProgram*, std::size_t> LinkedProgram::kernelAt(std::uint64_t address) {
  const Code* code = codeAt(address);
  if (code == nullptr) return {};
  const LinkedProgram& program = of(*code);
  for (std::size_t kernel = 0; kernel < program.kernelFunctions_.size(); ++kernel) {
    if (&program.kernelCode(kernel) == code) return {&program, kernel};
  }
  return {};
}

LinkedProgram::~LinkedProgram() { Programs::all().remove(firstAddress_); }

}  // namespace simulator::ptx

namespace simulator {

CompileError checkText(std::string_view text, std::vector<std::string>& defined) {
  try {
    defined = ptx::strongNames(ptx::parse(text));
    const ptx::LinkedProgram program({&text, 1}, Externs::refuse);
  } catch (const ptx::Undefined&) {
    return {};
  } catch (const ptx::DefinedAgain& failure) {
    return {CUDA_ERROR_UNKNOWN, failure.what()};
  } catch (const ptx::Failure& failure) {
    return {failure.result, failure.what()};
  }
  return {};
}

CompileError definedAgain(std::string_view name) {
  return {CUDA_ERROR_UNKNOWN, ptx::DefinedAgain(0, name).what()};
}

std::unique_ptr<Program> compile(std::span<const std::string_view> texts, CompileError& error,
                                 Externs externs) {
  if (const std::string& unknown = ptx::checks().unknown; !unknown.empty()) {
    error = {CUDA_ERROR_INVALID_VALUE, "NVIDIA_VIRTUAL_SIMULATOR_CHECK: there is no check '" +
                                           unknown +
                                           "'; list races, memory, barriers, separated by commas"};
    static std::once_flag said;
    std::call_once(said,
                   [&] { std::fprintf(stderr, "nvidia-virtual: %s\n", error.sentence.c_str()); });
    return nullptr;
  }
  try {
    return std::make_unique<ptx::LinkedProgram>(texts, externs);
  } catch (const ptx::Failure& failure) {
    error = {failure.result, failure.what()};
  } catch (const std::bad_alloc&) {
    error = {CUDA_ERROR_OUT_OF_MEMORY, "ptx: not enough host memory to compile it"};
  }
  return nullptr;
}

}  // namespace simulator
