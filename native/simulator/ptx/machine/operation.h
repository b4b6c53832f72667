// The decoded form of a program: what a warp steps through.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace simulator::ptx {

inline constexpr unsigned kLanes = 32;
inline constexpr std::uint32_t kAllLanes = ~0u;

struct Warp;
struct Operation;

/// Runs one operation for the lanes in `mask`; answers the operation to go on with, null when the
/// warp must be rescheduled.
using Handler = const Operation* (*)(Warp&, const Operation*, std::uint32_t mask);

/// Place of an operand: a byte offset into the frame's registers or, with the top bit, into the
/// function's constants. Every register holds 32 lanes side by side; a predicate is 32 bits.
using Slot = std::uint32_t;
inline constexpr Slot kConstantBank = 1u << 31;

struct Operation {
  static constexpr std::uint32_t kNoGuard = ~0u;
  static constexpr unsigned kSlots = 8;
  /// Convention: 0 is the result, 1 to 3 the sources; memory operations use 0 to 3 for values, 4
  /// for the address.
  static constexpr unsigned kAddress = 4, kSecondResult = 5, kMembers = 6, kExtra = 7;
  enum Flag : std::uint8_t {
    kEvenWithoutLanes = 1,  ///< runs although its guard leaves no lane: branches
    kNegatedGuard = 2,
    kWideAddress = 4,     ///< the address register has 64 bits
    kHasAddress = 8,      ///< there is an address register at all
    kFrameLocal = 16,     ///< the address is relative to the frame's local memory
    kNegatedSource = 32,  ///< !p as the predicate source
    kSpinning = 64,       ///< what a thread repeats while it waits for another
    kFlushes = 128,       ///< .ftz
  };

  Handler run = nullptr;
  Handler inner =
      nullptr;  ///< what `run` wraps: a rounding environment, the convergence of a .sync
  Slot slot[kSlots] = {};
  std::int64_t immediate = 0;
  std::uint32_t guard = kNoGuard;
  std::uint32_t target = 0;  ///< index of an operation, a call site, a table
  std::uint32_t line = 0;
  std::uint32_t detail =
      0;  ///< whatever else one handler needs: an mxcsr, a byte permutation, a count
  std::uint8_t flags = 0;
  std::uint8_t defines = 0;  ///< slots written and
  std::uint8_t uses = 0;     ///< read, one bit each: for the allocation of registers
  std::uint8_t width = 0;    ///< elements of a vector, or bytes
};

struct ParameterPlace {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// One call instruction: where the caller keeps arguments and results in its local memory.
struct CallSite {
  std::uint32_t function =
      0;  ///< index into the program's functions; kIndirect: through a register
  static constexpr std::uint32_t kIndirect = ~0u;
  std::vector<ParameterPlace> arguments;
  std::vector<ParameterPlace> results;
};

/// A constant or the address of a symbol, that operations name by slot; repeated for every lane.
struct Constant {
  enum class Kind : std::uint8_t { Number, Variable, Shared, DynamicShared, Function };
  Kind kind = Kind::Number;
  std::uint8_t bytes = 0;    ///< of one lane; 0 for a predicate
  std::uint32_t index = 0;   ///< of the program's variable, shared variable or function
  std::uint32_t offset = 0;  ///< into the bank
  std::uint64_t bits = 0;    ///< the number, or what is added to the address
};

struct MatrixProduct;

struct Code {
  std::string name;
  std::vector<Operation> operations;
  std::vector<Constant> constants;
  std::unique_ptr<std::uint8_t[]> constantStorage;
  std::uint8_t* constantBank = nullptr;  ///< aligned, inside constantStorage
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> tables;              ///< of brx.idx: operation indices
  std::vector<std::shared_ptr<const MatrixProduct>> products;  ///< named by number
  std::vector<ParameterPlace> parameters;
  std::vector<ParameterPlace> results;
  std::uint32_t frameBytes = 0;
  std::uint32_t registers = 0;  ///< of the hardware, estimated
  std::uint32_t localBytes = 0;
  bool callsIndirectly = false;
  bool allocates = false;     ///< alloca
  bool usesReserved = false;  ///< it or what it calls names %reserved_smem_offset_*
  bool entry = false;
};

}  // namespace simulator::ptx
