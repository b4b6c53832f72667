// shfl, vote, match, redux, elect, bar.
#include <utility>

#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

Operation Lowerer::beginSync(const Instruction& instruction, const Form& form, unsigned exchange) {
  Operation op = begin(instruction, form);
  op.inner = std::exchange(op.run, convergeMembers);
  op.width = static_cast<std::uint8_t>(exchange);
  return op;
}

void Lowerer::shuffle(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {{"up", Op::ShuffleUp},
                                                               {"down", Op::ShuffleDown},
                                                               {"bfly", Op::ShuffleButterfly},
                                                               {"idx", Op::ShuffleIndex}};
  if (!modifiers.take("sync") || !modifiers.take("b32")) unsupported(instruction);
  Form form;
  for (const auto& [name, op] : kNames) {
    if (modifiers.take(name)) form.op = op;
  }
  Operation op = beginSync(instruction, form, static_cast<unsigned>(Exchange::Word));
  const Operand& result = operand(instruction, 0);
  const bool pair = result.kind == Operand::Kind::Pair;
  use(op, 1, source(instruction, operand(instruction, 1), Type::B32));
  use(op, 2, source(instruction, operand(instruction, 2), Type::B32));
  use(op, 3, source(instruction, operand(instruction, 3), Type::B32));
  use(op, Operation::kMembers, source(instruction, operand(instruction, 4), Type::B32));
  define(op, 0, destination(instruction, pair ? result.elements[0] : result, Type::B32));
  if (pair)
    define(op, Operation::kSecondResult, destination(instruction, result.elements[1], Type::Pred));
  emit(op);
}

void Lowerer::vote(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {{"all", Op::VoteAll},
                                                               {"any", Op::VoteAny},
                                                               {"uni", Op::VoteUniform},
                                                               {"ballot", Op::VoteBallot}};
  if (!modifiers.take("sync")) unsupported(instruction);
  Form form;
  for (const auto& [name, op] : kNames) {
    if (modifiers.take(name)) form.op = op;
  }
  const Type type = modifiers.takeType();
  Operation op = beginSync(instruction, form, static_cast<unsigned>(Exchange::Predicate));
  predicateSource(op, 1, instruction, operand(instruction, 1));
  use(op, Operation::kMembers, source(instruction, operand(instruction, 2), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::match(const Instruction& instruction, Modifiers& modifiers) {
  if (!modifiers.take("sync")) unsupported(instruction);
  const Form form{.op = modifiers.take("all") ? Op::MatchAll : Op::MatchAny};
  modifiers.take("any");
  const Type type = modifiers.takeType();
  const Exchange exchange = bytesOf(type) == 8 ? Exchange::TwoWords : Exchange::Word;
  Operation op = beginSync(instruction, form, static_cast<unsigned>(exchange));
  const Operand& result = operand(instruction, 0);
  const bool pair = result.kind == Operand::Kind::Pair;
  use(op, 1, source(instruction, operand(instruction, 1), type));
  use(op, Operation::kMembers, source(instruction, operand(instruction, 2), Type::B32));
  define(op, 0, destination(instruction, pair ? result.elements[0] : result, Type::B32));
  if (pair)
    define(op, Operation::kSecondResult, destination(instruction, result.elements[1], Type::Pred));
  emit(op);
}

void Lowerer::reduce(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"add", Op::ReduxAdd}, {"min", Op::ReduxMin}, {"max", Op::ReduxMax},
      {"and", Op::ReduxAnd}, {"or", Op::ReduxOr},   {"xor", Op::ReduxXor}};
  if (!modifiers.take("sync")) unsupported(instruction);
  Form form;
  for (const auto& [name, op] : kNames) {
    if (modifiers.take(name)) form.op = op;
  }
  form.type = modifiers.takeType();
  if (bytesOf(form.type) != 4 || isFloat(form.type)) unsupported(instruction);
  Operation op = beginSync(instruction, form, static_cast<unsigned>(Exchange::Word));
  use(op, 1, source(instruction, operand(instruction, 1), Type::B32));
  use(op, Operation::kMembers, source(instruction, operand(instruction, 2), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

void Lowerer::elect(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.take("sync");
  Operation op =
      beginSync(instruction, {.op = Op::Elect}, static_cast<unsigned>(Exchange::Nothing));
  const Operand& result = operand(instruction, 0);
  if (result.kind != Operand::Kind::Pair) malformed(instruction, "expected d|p");
  use(op, Operation::kMembers, source(instruction, operand(instruction, 1), Type::B32));
  define(op, 0, destination(instruction, result.elements[0], Type::B32));
  define(op, Operation::kSecondResult, destination(instruction, result.elements[1], Type::Pred));
  emit(op);
}

void Lowerer::activeMask(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.take("b32");
  Operation op = begin(instruction, Form{.op = Op::ActiveMask});
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

void Lowerer::warpBarrier(const Instruction& instruction, Modifiers& modifiers) {
  if (!modifiers.take("sync")) unsupported(instruction);
  Operation op =
      beginSync(instruction, {.op = Op::WarpBarrier}, static_cast<unsigned>(Exchange::Nothing));
  if (checks().races) op.inner = checkedWarpBarrier;
  use(op, Operation::kMembers, source(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

void Lowerer::clusterBarrier(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeAny({"release", "acquire", "relaxed", "aligned"});
  if (modifiers.take("arrive")) return emit(begin(instruction, clusterBarrierArrive));
  if (!modifiers.take("wait")) unsupported(instruction);
  emit(begin(instruction, clusterBarrierWait));
}

/// bar and barrier: operands are the number, the count of threads, and for .red a predicate.
void Lowerer::barrier(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.take("warp")) return warpBarrier(instruction, modifiers);
  if (modifiers.take("cluster")) return clusterBarrier(instruction, modifiers);
  modifiers.takeAny({"cta", "aligned"});
  const bool arrives = modifiers.take("arrive"), reduces = modifiers.take("red");
  if (!arrives && !reduces && !modifiers.take("sync")) unsupported(instruction);
  Operation op = begin(instruction, arrives ? barrierArrive : barrierWait);
  std::size_t at = reduces ? 1 : 0;
  use(op, 1, source(instruction, operand(instruction, at++), Type::U32));
  const std::size_t counts = instruction.operands.size() - (reduces ? 1 : 0);
  if (at < counts) use(op, 2, source(instruction, operand(instruction, at++), Type::U32));
  if (reduces) {
    const Reduction kind = modifiers.take("popc")  ? Reduction::Popc
                           : modifiers.take("and") ? Reduction::And
                                                   : Reduction::Or;
    modifiers.take("or");
    op.detail = static_cast<std::uint32_t>(kind);
    predicateSource(op, 3, instruction, operand(instruction, at));
    define(op, 0, destination(instruction, operand(instruction, 0), modifiers.takeType()));
  }
  emit(op);
}

}  // namespace simulator::ptx
