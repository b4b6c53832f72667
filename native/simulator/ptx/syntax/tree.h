// Syntax tree of a PTX text. String views point into the text, which outlives the tree.
#pragma once

#include <array>
#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

struct Operand {
  enum class Kind : std::uint8_t {
    Register,  ///< index into Function::registers
    Integer,   ///< bits
    Float,     ///< bits of a double
    Float32,   ///< 0f…: bits of a float
    Local,     ///< index into Function::variables: a parameter or a variable declared in the body;
               ///< plus offset
    Symbol,    ///< name of something at module scope, or of a label; plus offset
    Special,   ///< %tid.x and so on, by name
    Sink,      ///< _
    Vector,    ///< {a, b, …}
    List,      ///< (a, b, …), in calls
    Address,   ///< [elements[0] + offset]; more elements for the forms with several
    Pair,      ///< a|b
  };
  Kind kind = Kind::Sink;
  bool negated = false;  ///< !p
  bool element = false;  ///< name[index], without brackets around it; if the index is a register,
                         ///< it is elements[0], and bits has the bytes of an element
  std::uint32_t index = 0;
  std::int64_t offset = 0;
  std::uint64_t bits = 0;
  std::string_view name;
  std::vector<Operand> elements;
};

struct Guard {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t predicate = kNone;
  bool negated = false;
};

struct Instruction {
  std::string_view text;  ///< opcode with its modifiers
  std::uint32_t line = 0;
  Guard guard;
  std::vector<Operand> operands;
};

/// One value of an initialiser.
struct Initialiser {
  std::uint64_t bits = 0;   ///< a number, already of the element's type
  std::string_view symbol;  ///< or the address of this, plus bits
  std::uint64_t mask = 0;   ///< mask(symbol): only these bits of the address, shifted down
};

struct Variable {
  std::string_view name;
  Space space = Space::Register;
  Type type = Type::None;
  Linkage linkage = Linkage::Internal;
  std::uint64_t alignment = 1;
  std::uint64_t elements = 1;
  bool array = false;
  bool unsized = false;     ///< name[]
  bool managed = false;     ///< .attribute(.managed)
  std::uint32_t range = 0;  ///< name<range>: there are as many variables, one after the other
  std::uint32_t line = 0;
  std::vector<Initialiser> initialisers;
  std::uint64_t bytes() const { return elements * bytesOf(type); }
};

struct Prototype {
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
};

struct Function {
  std::string_view name;
  Linkage linkage = Linkage::Internal;
  bool entry = false;
  bool defined = false;
  std::uint32_t line = 0;
  std::vector<Type> registers;
  std::vector<Variable> variables;  ///< returns, then parameters, then those of the body
  std::uint32_t returns = 0;
  std::uint32_t parameters = 0;
  std::vector<Instruction> instructions;
  std::unordered_map<std::string_view, std::uint32_t> labels;  ///< to an index into instructions
  std::forward_list<std::string> texts;                        ///< that the parser made
  std::unordered_map<std::string_view, Prototype> prototypes;
  std::unordered_map<std::string_view, std::vector<std::string_view>> branchTargets;
  std::array<std::uint32_t, 3> maximumThreads{};   ///< .maxntid
  std::array<std::uint32_t, 3> requiredThreads{};  ///< .reqntid
  std::array<std::uint32_t, 3> requiredCluster{};  ///< .reqnctapercluster
  std::uint32_t maximumRegisters = 0;              ///< .maxnreg
  std::uint32_t minimumBlocks = 0;                 ///< .minnctapersm
};

struct Module {
  std::uint32_t version = 0;  ///< 90 for 9.0
  std::string_view target;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::unordered_map<std::string_view, std::string_view> aliases;
};

}  // namespace simulator::ptx
