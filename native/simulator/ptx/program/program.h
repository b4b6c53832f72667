// A program: the symbols of its modules linked together, and the code of its functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/simulator/engine.h"
#include "native/simulator/ptx/machine/operation.h"
#include "native/simulator/ptx/syntax/tree.h"

namespace simulator::ptx {

/// Meaning of a name at the place of its use.
struct Symbol {
  enum class Kind : std::uint8_t { None, Variable, Shared, DynamicShared, Function };
  Kind kind = Kind::None;
  std::uint32_t index = 0;
};

struct SharedVariable {
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  bool weak = false;             ///< until another module defines it
  bool usedByFunctions = false;  ///< and so at one offset in all kernels
  std::uint32_t offset = 0;      ///< then
};

/// Names that a module can see: its own, then those that others export.
using SymbolTable = std::unordered_map<std::string_view, Symbol>;

class LinkedProgram final : public Program {
 public:
  LinkedProgram(std::span<const std::string_view> texts, Externs externs);
  ~LinkedProgram() override;
  std::span<const KernelInfo> kernels() const override { return kernels_; }
  std::span<const VariableInfo> variables() const override { return variables_; }
  void bind(std::size_t index, std::uint64_t address) override { addresses_[index] = address; }
  void initialise() override;
  bool launchesKernels() const override { return launches_; }
  void initialise(std::size_t index) override { writeInitialValues(index); }
  void bindInitialised(std::size_t index, std::uint64_t address) override {
    addresses_[index] = address;
    initials_[index].variable = nullptr;
  }

  const Code& code(std::uint32_t function) const { return *codes_[function]; }
  const Code& kernelCode(std::size_t kernel) const { return *codes_[kernelFunctions_[kernel]]; }
  /// The address of a function, of which all programs of the process have their own: an object that
  /// a kernel of one module made has virtual functions that a kernel of another module may call.
  std::uint64_t addressOfFunction(std::uint32_t function) const {
    return firstAddress_ + std::uint64_t{function} * kCodeBytes;
  }
  /// The program in which a function's call sites number functions.
  static const LinkedProgram& of(const Code& code) {
    return *static_cast<const OwnedCode&>(code).program;
  }
  /// The function at an address; null when no program has one there.
  static const Code* codeAt(std::uint64_t address);
  /// The kernel at an address, by its program and index; null when there is none.
  static std::pair<const LinkedProgram*, std::size_t> kernelAt(std::uint64_t address);
  std::uint32_t sharedBytes(std::size_t kernel, std::uint32_t dynamic) const;
  /// "sum.cu:14", or the PTX line where the text has no line information.
  std::string place(const Operation* op) const;
  /// "byte 4 of variable total"; empty when the address is in no variable.
  std::string variableAt(std::uint64_t address) const;

  // For the lowering of functions.
  Symbol resolve(std::uint32_t module, std::string_view name) const;
  const std::string& functionName(std::uint32_t function) const { return functionNames_[function]; }
  bool functionDefined(std::uint32_t function) const { return definitions_[function] != nullptr; }
  Symbol addBodyVariable(const Variable& variable);
  void launches() { launches_ = true; }

 private:
  // linker.cpp
  void declare(std::uint32_t module);
  void declareVariable(std::uint32_t module, const Variable& variable);
  void declareFunction(std::uint32_t module, const Function& function);
  void defineExterns();
  /// Whether it is a weak variable, so that another module may define it.
  bool mayBeReplaced(const Symbol& symbol) const;
  void replace(const Symbol& symbol, const Variable& variable, std::uint32_t module);
  Symbol newVariable(const Variable& variable);
  // layout.cpp
  void lowerAll();
  void layOutShared();
  void describeKernels();
  std::vector<bool> reachable(std::uint32_t function) const;
  /// What is known of the stacks of functions while kernels are described.
  struct Stacks {
    enum class State : std::uint8_t { unknown, begun, done };
    struct Known {
      State state = State::unknown;
      std::uint32_t bytes = 0;
    };
    std::uint32_t unbounded;  ///< counted for recursion, calls through pointers and alloca
    std::vector<Known> functions;
  };
  std::uint32_t stackBytes(std::uint32_t function, Stacks& stacks) const;
  void fillConstants(Code& code);
  std::uint64_t addressOf(const Constant& constant, const Code& code) const;
  std::uint32_t sharedOffset(std::uint32_t variable, const Code& code) const;
  void writeInitialValues(std::size_t variable);

  static constexpr std::uint64_t kCodeBytes = 16;  ///< between the addresses of two functions

  /// Every function of a program is one of these.
  struct OwnedCode : Code {
    OwnedCode(Code&& code, const LinkedProgram& owner) : Code(std::move(code)), program(&owner) {}
    const LinkedProgram* program;
  };
  struct Initial {
    const Variable* variable = nullptr;
    std::uint32_t module = 0;
  };
  std::vector<std::string> texts_;  ///< the trees point into them
  std::vector<Module> modules_;
  std::vector<SymbolTable> local_;  ///< by module
  SymbolTable exports_;
  std::vector<KernelInfo> kernels_;
  std::vector<std::uint32_t> kernelFunctions_;
  std::vector<VariableInfo> variables_;
  std::vector<std::uint64_t> addresses_;
  std::vector<Initial> initials_;
  std::vector<bool> weak_;  ///< by variable: a later definition takes its place
  std::vector<SharedVariable> shared_;
  std::vector<std::string> functionNames_;
  std::vector<const Function*> definitions_;
  std::vector<std::uint32_t> definedIn_;
  std::vector<std::unique_ptr<OwnedCode>> codes_;
  std::vector<std::unordered_map<std::uint32_t, std::uint32_t>>
      kernelShared_;  ///< by function, of kernels: offsets of its own variables
  std::vector<std::uint32_t> staticShared_;  ///< by function, of kernels
  std::uint32_t declaring_ = 0;
  bool launches_ = false;
  std::uint64_t firstAddress_ = 0;
};

}  // namespace simulator::ptx
