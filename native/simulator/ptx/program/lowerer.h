// The state of lowering one function, shared by the files that decode instructions by their noun.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/matrix.h"
#include "native/simulator/ptx/machine/texture.h"
#include "native/simulator/ptx/program/control_flow.h"
#include "native/simulator/ptx/program/fragments.h"
#include "native/simulator/ptx/program/modifiers.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/syntax/failure.h"

namespace simulator::ptx {

/// An mxcsr with all exceptions masked that rounds so, and flushes subnormals if asked.
std::uint32_t environmentFor(Rounding rounding, bool flush);

class Lowerer {
 public:
  Lowerer(LinkedProgram& program, std::uint32_t module, const Function& function);
  Code run();
  /// All that are decoded, sorted.
  static std::vector<std::string_view> opcodes();

 private:
  using Decoder = void (Lowerer::*)(const Instruction&, Modifiers&);
  using Decoders = std::unordered_map<std::string_view, Decoder>;
  static const Decoders& decoders();
  static Decoder decoderFor(std::string_view opcode);

  // lowering.cpp: the frame of it
  void placeVariables();
  void placeParameters();
  void lowerBlock(std::uint32_t position);
  void lowerInstruction(const Instruction& instruction);
  void finishBlock(std::uint32_t position);
  void patchTargets();
  void placeConstants();
  [[noreturn]] void unsupported(const Instruction& instruction) const;
  void require(bool legal, const Instruction& instruction) const {
    if (!legal) unsupported(instruction);
  }
  [[noreturn]] static void malformed(const Instruction& instruction, const std::string& what);

  // operands.cpp
  Operation begin(const Instruction& instruction, const Form& form);
  Operation begin(const Instruction& instruction, Handler handler);
  void emit(const Operation& operation) { code_.operations.push_back(operation); }
  void guard(Operation& operation, const Instruction& instruction) const;
  const Operand& operand(const Instruction& instruction, std::size_t index) const;
  Slot temporary(Type type);
  Slot constant(Constant::Kind kind, std::uint32_t index, std::uint64_t bits, unsigned bytes);
  Slot number(std::uint64_t bits, unsigned bytes) {
    return constant(Constant::Kind::Number, 0, bits, bytes);
  }
  Slot source(const Instruction& instruction, const Operand& operand, Type type,
              bool mayBeWider = false);
  Slot sourceRegister(const Instruction& instruction, const Operand& operand, Type type,
                      bool mayBeWider);
  Slot special(const Instruction& instruction, const Operand& operand, unsigned bytes);
  Slot elementAddress(const Instruction& instruction, const Operand& array);
  Slot address(const Instruction& instruction, const Operand& operand);
  Slot frameAddress(const Instruction& instruction, std::uint64_t offset, unsigned bytes);
  Slot destination(const Instruction& instruction, const Operand& operand, Type type,
                   bool mayBeWider = false);
  unsigned registerBytes(const Operand& operand, Type type) const;
  void use(Operation& op, unsigned slot, Slot value) const;
  void define(Operation& op, unsigned slot, Slot value) const;
  /// d, a, b, c of one type.
  void regular(const Instruction& instruction, const Form& form, unsigned sources);
  void predicateSource(Operation& op, unsigned slot, const Instruction& instruction,
                       const Operand& operand);

  // decode_arithmetic.cpp
  void add(const Instruction&, Modifiers&);
  void multiply(const Instruction&, Modifiers&);
  void multiplyAdd(const Instruction&, Modifiers&);
  void multiply24(const Instruction&, Modifiers&);
  void fma(const Instruction&, Modifiers&);
  void divide(const Instruction&, Modifiers&);
  void minimum(const Instruction&, Modifiers&);
  void unary(const Instruction&, Modifiers&);
  void approximate(const Instruction&, Modifiers&);
  void absoluteDifference(const Instruction&, Modifiers&);
  void video(const Instruction&, Modifiers&);
  void videoOfOne(const Instruction&, Modifiers&);
  void dotProduct(const Instruction&, Modifiers&);
  void copysign(const Instruction&, Modifiers&);
  void testp(const Instruction&, Modifiers&);
  void floating(const Instruction&, Modifiers&, Form form, unsigned sources);

  // decode_bits.cpp
  void logic(const Instruction&, Modifiers&);
  void shift(const Instruction&, Modifiers&);
  void funnelShift(const Instruction&, Modifiers&);
  void count(const Instruction&, Modifiers&);
  void field(const Instruction&, Modifiers&);
  void mask(const Instruction&, Modifiers&);
  void permute(const Instruction&, Modifiers&);
  void lop3(const Instruction&, Modifiers&);
  void fns(const Instruction&, Modifiers&);

  // decode_move.cpp
  void move(const Instruction&, Modifiers&);
  void pack(const Instruction&, Type type);
  void unpack(const Instruction&, Type type);
  void convert(const Instruction&, Modifiers&);
  void packConverted(const Instruction&, Modifiers&);
  void takeComparison(const Instruction&, Modifiers&, Form& form);
  void setPredicate(const Instruction&, Modifiers&);
  void setValue(const Instruction&, Modifiers&);
  void select(const Instruction&, Modifiers&);
  void selectBySign(const Instruction&, Modifiers&);

  // decode_memory.cpp
  void load(const Instruction&, Modifiers&);
  void store(const Instruction&, Modifiers&);
  void access(const Instruction&, Modifiers&, bool loads);
  /// Emits a memory operation, with the checks that are on.
  void emitAccess(Operation op, const Access& access);
  void convertAddress(const Instruction&, Modifiers&);
  void isSpace(const Instruction&, Modifiers&);
  void mapRank(const Instruction&, Modifiers&);
  void rankOf(const Instruction&, Modifiers&);
  void allocateLocal(const Instruction&, Modifiers&);
  void ignored(const Instruction&, Modifiers&);
  void cachePolicy(const Instruction&, Modifiers&);
  void fence(const Instruction&, Modifiers&);
  /// Fills the address of a memory operation; answers the space that it really is in.
  Space addressOperand(Operation& op, const Instruction& instruction, const Operand& operand,
                       Space space);

  // decode_atomic.cpp
  void atomic(const Instruction&, Modifiers&);
  /// The name of an atomic operation; Op::ActiveMask if there is none.
  static Op takeAtomicOperation(Modifiers& modifiers);
  Operation beginAtomic(const Instruction& instruction, Form& form, Access& checked);
  void emitAtomic(const Instruction& instruction, Operation op, const Form& form,
                  const Access& checked);
  void vectorAtomic(const Instruction& instruction, Form form, Access checked, unsigned count);

  // decode_async.cpp
  void copyAsync(const Instruction&, Modifiers&);
  /// cp.async.bulk between global and shared memory, of any block of the cluster.
  void copyBulk(const Instruction&, Modifiers&);
  void reduceBulk(const Instruction&, Modifiers&);
  /// Operands: destination, source, bytes, with a signal the mbarrier, maybe a cache policy.
  void transferBulk(const Instruction& instruction, Modifiers& modifiers, Handler handler, Space to,
                    Space from, bool signals);
  /// A register with the generic address of memory in `space`, without `offset`.
  Slot genericAddress(const Instruction& instruction, const Operand& operand, Space space,
                      std::int64_t& offset);
  void takenBytes(Operation& op, const Instruction& instruction, std::size_t operands);
  void storeAsync(const Instruction&, Modifiers&);
  void memoryBarrierObject(const Instruction&, Modifiers&);
  void memoryBarrierArrive(const Instruction&);
  void memoryBarrierArrival(const Instruction&, Modifiers&, Operation op);
  void memoryBarrierWait(const Instruction&, Modifiers&, Operation op);
  /// `bytes` have come, of those that the mbarrier expects.
  void completeTransactions(const Instruction& instruction, const Operand& barrier, Slot bytes);

  // decode_warp.cpp
  void shuffle(const Instruction&, Modifiers&);
  void vote(const Instruction&, Modifiers&);
  void match(const Instruction&, Modifiers&);
  void reduce(const Instruction&, Modifiers&);
  void elect(const Instruction&, Modifiers&);
  void activeMask(const Instruction&, Modifiers&);
  void warpBarrier(const Instruction&, Modifiers&);
  void barrier(const Instruction&, Modifiers&);
  void clusterBarrier(const Instruction&, Modifiers&);
  Operation beginSync(const Instruction& instruction, const Form& form, unsigned exchange);

  // decode_matrix.cpp
  void matrix(const Instruction&, Modifiers&);
  void matrixAccess(const Instruction&, Modifiers&, bool loads);
  void matrixProduct(const Instruction&, Modifiers&, bool fragments);
  struct Multiplication {
    MatrixProduct product;
    Arrangement arrangement{};
    Rounding rounding{};
    bool columnMajorA = false, columnMajorB = false;
  };
  Multiplication takeMultiplication(const Instruction&, Modifiers&, bool fragments);
  void placeFragment(const Instruction& instruction, std::size_t index, const FragmentShape& shape,
                     Fragment& fragment);
  void matrixRows(const Instruction&, Modifiers&);
  void transposeMatrix(const Instruction&, Modifiers&);
  Operation carrier(const Instruction& instruction, const Operand& operand, Element element,
                    bool result);
  std::uint32_t productNumber(const MatrixProduct& product);
  void converge(const Instruction& instruction);

  // decode_texture.cpp
  void texture(const Instruction&, Modifiers&);
  void imageQuery(const Instruction&, Modifiers&);
  void surface(const Instruction&, Modifiers&);
  void surfaceReduction(const Instruction&, Modifiers&);
  /// The handle in a register, or in the variable that an operand names.
  Slot imageHandle(const Instruction& instruction, const Operand& operand);
  void stage(const Instruction& instruction, const Operand& operand, unsigned first, unsigned count,
             Type type);
  void stageCoordinates(const Instruction& instruction, const Operand& operand, Geometry geometry,
                        Type type);
  void defineFetched(Operation& op, const Instruction& instruction, Type type, unsigned count);
  SurfaceAccess takeSurfaceAccess(const Instruction& instruction, Modifiers& modifiers);
  void surfacePlace(Operation& op, const Instruction& instruction, const Operand& image,
                    Geometry geometry);

  // decode_control.cpp
  void branch(const Instruction&, Modifiers&);
  void branchByTable(const Instruction&, Modifiers&);
  void leave(const Instruction&, Modifiers&);
  void call(const Instruction&, Modifiers&);
  void multicastMemory(const Instruction&, Modifiers&);
  void sleep(const Instruction&, Modifiers&);
  CallSite callSite(const Instruction& instruction, const std::vector<Operand>* results,
                    const std::vector<Operand>* arguments);
  ParameterPlace argumentPlace(const Instruction& instruction, const Operand& operand);

  // registers.cpp
  void allocateRegisters();
  std::uint32_t hardwareRegisters() const;
  std::vector<std::uint32_t> stretches() const;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> liveIntervals() const;

  LinkedProgram& program_;
  std::uint32_t module_;
  const Function& function_;
  ControlFlow flow_;
  Code code_;
  std::vector<Type> registers_;  ///< of the function, then temporaries
  std::vector<std::uint32_t>
      localOffset_;  ///< by variable: in the frame's local memory, or of a kernel's parameter
  std::vector<Symbol> bodySymbol_;         ///< by variable: of .shared, .global and .const ones
  std::vector<std::uint32_t> blockStart_;  ///< by block: its first operation
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      operationsOf_;  ///< by instruction: its first operation, the one behind its last
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      branches_;  ///< operation, block that it leads to
  std::map<std::tuple<Constant::Kind, std::uint32_t, std::uint64_t, unsigned>, Slot> constants_;
};

}  // namespace simulator::ptx
