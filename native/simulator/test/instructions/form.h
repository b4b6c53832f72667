// One instruction form: how PTX spells it, which operands it gets, and what it has to compute.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace instructions {

using u64 = std::uint64_t;
using u128 = unsigned __int128;
using i128 = __int128;

/// What an operand is. It decides the width of its register and the values that it is tested with.
enum class Kind : std::uint8_t {
  Pred,
  Int16,
  Int32,
  Int64,
  Byte16,  ///< an 8-bit number in a 16-bit register; the upper bits are arbitrary
  Amount,  ///< 32 bits: a shift amount or a position, also past the width
  Bit,     ///< 32 bits: 0 or 1
  Pair16,  ///< two 16-bit integers
  Quad8,   ///< four 8-bit integers
  F16,
  BF16,
  F16x2,
  BF16x2,
  F32,
  F64,
};

/// Bits of the register; 0 for a predicate.
unsigned registerBits(Kind kind);

/// Fills the results of one lane from its sources. Bits above a register's width are ignored.
using Reference = std::function<void(const u64* source, u64* result)>;
/// Says whether `got` is right where more than one answer is. `wanted` is from the reference.
using Check = std::function<bool(const u64* source, u64 wanted, u64 got)>;

/// The operands of a warp's 32 lanes in, both results of each out. Answers the lanes whose results
/// are defined.
using WarpReference = std::function<std::uint32_t(const u64 (*source)[4], u64 (*result)[2])>;

struct Form {
  std::string name;  ///< opcode and modifiers
  std::vector<Kind> results, sources;
  std::string
      body;  ///< statements; results are %d0, %d1, sources %s0 to %s3. Empty: one plain instruction
  Reference reference;
  Check check;         ///< of the first result; empty: equal bits
  std::string remark;  ///< tells forms of one name apart
  WarpReference
      warp;  ///< instead of `reference`, where lanes work together; then there is no guarded copy
  /// False: the driver's assembler lets a guarded copy change the result where the guard is false.
  /// Seen on an H200 with driver 580.159, 2026-11-23. nvcc emits no such copy, so none is run.
  bool guardWorks = true;
  bool hasGuardedCopy() const { return !warp && guardWorks; }
};

using Forms = std::vector<Form>;

/// An opcode and its modifiers.
class Words {
 public:
  explicit Words(std::string_view name);
  const std::string& opcode() const { return words_[0]; }
  bool has(std::string_view word) const;
  /// The word that is `back` places before the last.
  const std::string& last(std::size_t back = 0) const { return words_[words_.size() - 1 - back]; }
  std::size_t size() const { return words_.size(); }
  const std::string& operator[](std::size_t index) const { return words_[index]; }

 private:
  std::vector<std::string> words_;
};

/// All names that a pattern stands for: "add(|.sat).(s32|u32)" gives four.
std::vector<std::string> expand(std::string_view pattern);

// The table, one function for each subject.
void integerForms(Forms& forms);
void carryForms(Forms& forms);
void bitForms(Forms& forms);
void videoForms(Forms& forms);
void floatForms(Forms& forms);
void halfForms(Forms& forms);
void approximateForms(Forms& forms);
void compareForms(Forms& forms);
void convertForms(Forms& forms);
void memoryForms(Forms& forms);
void atomicForms(Forms& forms);
void spaceForms(Forms& forms);
void warpForms(Forms& forms);
void matrixForms(Forms& forms);
void asyncForms(Forms& forms);

Forms allForms();
/// Spellings of the table's opcodes that are no PTX. They have no reference.
Forms refusedForms();

/// Taken by NVIDIA's assembler, but not in the PTX manual.
bool isUndocumented(const std::string& name);

}  // namespace instructions
