#include "native/simulator/ptx/program/lowering.h"

#include <algorithm>
#include <cstring>

#include "native/simulator/ptx/machine/call.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

Lowerer::Lowerer(LinkedProgram& program, std::uint32_t module, const Function& function)
    : program_(program),
      module_(module),
      function_(function),
      flow_(analyse(function)),
      registers_(function.registers),
      operationsOf_(function.instructions.size()) {
  code_.name = function.name;
  code_.entry = function.entry;
}

void Lowerer::unsupported(const Instruction& instruction) const {
  throw Failure(instruction.line, "instruction '" + std::string(instruction.text) +
                                      "' is not implemented by the simulated GPU");
}

void Lowerer::malformed(const Instruction& instruction, const std::string& what) {
  throw Failure(instruction.line, "instruction '" + std::string(instruction.text) + "': " + what);
}

void Lowerer::placeParameters() {
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < function_.returns + function_.parameters; ++i) {
    const Variable& variable = function_.variables[i];
    end = aligned(end, variable.alignment);
    localOffset_[i] = static_cast<std::uint32_t>(end);
    const ParameterPlace place{static_cast<std::uint32_t>(end),
                               static_cast<std::uint32_t>(variable.bytes())};
    (i < function_.returns ? code_.results : code_.parameters).push_back(place);
    end += variable.bytes();
  }
  if (!function_.entry) code_.localBytes = static_cast<std::uint32_t>(end);
}

void Lowerer::placeVariables() {
  localOffset_.resize(function_.variables.size());
  bodySymbol_.resize(function_.variables.size());
  placeParameters();
  for (std::uint32_t i = function_.returns + function_.parameters; i < function_.variables.size();
       ++i) {
    const Variable& variable = function_.variables[i];
    if (variable.space == Space::Local || variable.space == Space::Param) {
      const std::uint64_t at = aligned(code_.localBytes, variable.alignment);
      if (at + variable.bytes() > (512u << 10))
        throw Failure(variable.line, "local memory of more than 512 KiB a thread");
      localOffset_[i] = static_cast<std::uint32_t>(at);
      code_.localBytes = static_cast<std::uint32_t>(at + variable.bytes());
    } else {
      bodySymbol_[i] = program_.addBodyVariable(variable);
    }
  }
}

void Lowerer::lowerInstruction(const Instruction& instruction) {
  Modifiers modifiers(instruction.text);
  const Decoder decoder = decoderFor(modifiers.opcode());
  if (!decoder) unsupported(instruction);
  (this->*decoder)(instruction, modifiers);
  if (!modifiers.empty()) unsupported(instruction);
}

/// If a path continues at a block that is not the next one, or has other predecessors, it goes
/// there by a jump: the place where lanes meet.
void Lowerer::finishBlock(std::uint32_t position) {
  const BasicBlock& block = flow_.blocks[flow_.order[position]];
  if (block.begin == block.end) {  // the end of the function
    Operation op;
    op.run = returnFromCall;
    emit(op);
    return;
  }
  const Instruction& last = function_.instructions[block.end - 1];
  if (endsPath(last)) return;
  const std::uint32_t next = flow_.order[position] + 1;
  const bool follows = position + 1 < flow_.order.size() && flow_.order[position + 1] == next;
  if (follows && flow_.blocks[next].predecessors < 2) return;
  Operation op;
  op.run = jump;
  op.line = last.line;
  branches_.emplace_back(static_cast<std::uint32_t>(code_.operations.size()), next);
  emit(op);
}

void Lowerer::lowerBlock(std::uint32_t position) {
  const std::uint32_t number = flow_.order[position];
  const BasicBlock& block = flow_.blocks[number];
  blockStart_[number] = static_cast<std::uint32_t>(code_.operations.size());
  for (std::uint32_t i = block.begin; i < block.end; ++i) {
    operationsOf_[i].first = static_cast<std::uint32_t>(code_.operations.size());
    lowerInstruction(function_.instructions[i]);
    operationsOf_[i].second = static_cast<std::uint32_t>(code_.operations.size());
  }
  finishBlock(position);
}

void Lowerer::patchTargets() {
  for (const auto& [operation, block] : branches_)
    code_.operations[operation].target = blockStart_[block];
  for (auto& table : code_.tables) {
    for (std::uint32_t& target : table) target = blockStart_[target];
  }
}

void Lowerer::placeConstants() {
  std::uint32_t end = 0;
  for (Constant& constant : code_.constants) {
    constant.offset = end;
    end += constant.bytes == 0 ? 64 : constant.bytes * kLanes;
  }
  code_.constantStorage = std::make_unique<std::uint8_t[]>(end + 64);
  void* start = code_.constantStorage.get();
  std::size_t space = end + 64;
  code_.constantBank = static_cast<std::uint8_t*>(std::align(64, end, start, space));
}

Code Lowerer::run() {
  placeVariables();
  blockStart_.resize(flow_.blocks.size());
  for (std::uint32_t position = 0; position < flow_.order.size(); ++position) lowerBlock(position);
  patchTargets();
  placeConstants();
  code_.registers = hardwareRegisters();
  allocateRegisters();
  code_.localBytes = static_cast<std::uint32_t>(aligned(code_.localBytes, 16));
  return std::move(code_);
}

Code lower(LinkedProgram& program, std::uint32_t module, const Function& function) {
  return Lowerer(program, module, function).run();
}

}  // namespace simulator::ptx
