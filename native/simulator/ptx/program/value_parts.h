// Which values of a function need hardware registers, and which registers of the text share them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "native/simulator/ptx/program/control_flow.h"

namespace simulator::ptx {

/// The registers that each instruction of a function writes and reads, as indices into
/// Function::registers.
class RegisterEffects {
 public:
  explicit RegisterEffects(std::size_t instructions) : at_(instructions) {}
  /// Records the next effects; `instruction` must differ from those of earlier calls.
  void add(std::uint32_t instruction, std::span<const std::uint32_t> writes,
           std::span<const std::uint32_t> reads) {
    at_[instruction] = {static_cast<std::uint32_t>(registers_.size()),
                        static_cast<std::uint32_t>(writes.size()),
                        static_cast<std::uint32_t>(reads.size())};
    registers_.insert(registers_.end(), writes.begin(), writes.end());
    registers_.insert(registers_.end(), reads.begin(), reads.end());
  }
  std::span<const std::uint32_t> writes(std::uint32_t instruction) const {
    return std::span(registers_).subspan(at_[instruction].begin, at_[instruction].writes);
  }
  std::span<const std::uint32_t> reads(std::uint32_t instruction) const {
    return std::span(registers_)
        .subspan(at_[instruction].begin + at_[instruction].writes, at_[instruction].reads);
  }

 private:
  struct Place {
    std::uint32_t begin = 0, writes = 0, reads = 0;
  };
  std::vector<Place> at_;
  std::vector<std::uint32_t> registers_;
};

/// A piece of 32 bits of a value, by number.
using Part = std::uint32_t;

/// The parts of 32 bits that hold a register's value. Copies share the parts of what they copy.
struct Parts {
  std::array<Part, 4> part{};
  std::uint32_t count = 0;
};

/// Which values need no register of their own, and which parts hold the others.
class ValueParts {
 public:
  ValueParts(const Function& function, const ControlFlow& flow, const RegisterEffects& effects);
  const Parts& of(std::uint32_t r) const { return parts_[r]; }
  /// True for an instruction that moves no value once copies share their parts.
  bool removed(std::uint32_t instruction) const { return removed_[instruction]; }
  std::uint32_t count() const { return count_; }
  template <class F>
  void each(std::span<const std::uint32_t> registers, F act) const {
    for (const std::uint32_t r : registers) {
      for (std::uint32_t k = 0; k < parts_[r].count; ++k) act(parts_[r].part[k]);
    }
  }

 private:
  void own(std::uint32_t r);
  bool single(std::uint32_t r) const { return definitions_[r] == 1; }
  bool copyable(const Operand& operand) const;
  void define(std::uint32_t instruction);
  bool uniformOperand(const Operand& operand) const;
  bool isUniform(std::uint32_t instruction);
  bool isIndexed(const Instruction& instruction);
  bool sharesParts(const Instruction& instruction);
  void share(std::uint32_t to, std::uint32_t from, std::uint32_t first, std::uint32_t count);
  bool unpacks(const Operand& to, const Operand& from);
  bool packs(const Operand& to, const Operand& from);

  const Function& function_;
  const RegisterEffects& effects_;
  std::vector<std::uint32_t> definitions_;
  std::vector<bool> known_, uniform_, indexed_;
  std::vector<Parts> parts_;
  std::vector<bool> removed_;
  std::uint32_t count_ = 0;
};

}  // namespace simulator::ptx
