// Places: offsets of shared variables, sizes of stacks, constants, initial values.
#include <algorithm>
#include <bit>
#include <cstring>

#include "native/simulator/ptx/machine/warp.h"
#include "native/simulator/ptx/program/lowering.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/syntax/failure.h"

namespace simulator::ptx {
namespace {

/// Local memory for what no compiler can bound: recursion, calls through pointers, alloca.
constexpr std::uint32_t kUnboundedStack = 64 << 10;

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

void LinkedProgram::lowerAll() {
  codes_.resize(functionNames_.size());
  for (std::uint32_t f = 0; f < codes_.size(); ++f) {
    declaring_ = definedIn_[f];
    codes_[f] = std::make_unique<OwnedCode>(lower(*this, definedIn_[f], *definitions_[f]), *this);
  }
}

std::vector<bool> LinkedProgram::reachable(std::uint32_t function) const {
  std::vector<bool> seen(codes_.size());
  std::vector<std::uint32_t> left{function};
  seen[function] = true;
  const auto visit = [&](std::uint32_t next) {
    if (!seen[next]) left.push_back(next);
    seen[next] = true;
  };
  while (!left.empty()) {
    const Code& code = *codes_[left.back()];
    left.pop_back();
    for (const CallSite& site : code.calls) {
      if (site.function != CallSite::kIndirect) visit(site.function);
    }
    if (!code.callsIndirectly) continue;
    for (std::uint32_t f = 0; f < codes_.size(); ++f) {
      if (!codes_[f]->entry) visit(f);
    }
  }
  return seen;
}

std::uint32_t LinkedProgram::stackBytes(std::uint32_t function, Stacks& stacks) const {
  Stacks::Known& known = stacks.functions[function];
  if (known.state == Stacks::State::done) return known.bytes;
  if (known.state == Stacks::State::begun) return stacks.unbounded;  // recursion
  known.state = Stacks::State::begun;
  const Code& code = *codes_[function];
  std::uint32_t deepest = code.callsIndirectly ? stacks.unbounded : 0;
  for (const CallSite& site : code.calls) {
    if (site.function != CallSite::kIndirect)
      deepest = std::max(deepest, stackBytes(site.function, stacks));
  }
  known.state = Stacks::State::done;
  known.bytes =
      std::min(code.localBytes + deepest + (code.allocates ? stacks.unbounded : 0), 512u << 10);
  return known.bytes;
}

void LinkedProgram::layOutShared() {
  for (const auto& code : codes_) {
    if (code->entry) continue;
    for (const Constant& constant : code->constants) {
      if (constant.kind == Constant::Kind::Shared) shared_[constant.index].usedByFunctions = true;
    }
  }
  std::uint64_t common = 0;
  for (SharedVariable& variable : shared_) {
    if (!variable.usedByFunctions) continue;
    common = aligned(common, variable.alignment);
    variable.offset = static_cast<std::uint32_t>(common);
    common += variable.size;
  }
  kernelShared_.resize(codes_.size());
  staticShared_.resize(codes_.size());
  for (const std::uint32_t kernel : kernelFunctions_) {
    const std::vector<bool> seen = reachable(kernel);
    std::uint64_t end = 0;
    for (std::uint32_t f = 0; f < codes_.size(); ++f) {
      for (const Constant& constant : codes_[f]->constants) {
        if (!seen[f] || constant.kind != Constant::Kind::Shared) continue;
        const SharedVariable& variable = shared_[constant.index];
        if (variable.usedByFunctions) end = std::max(end, variable.offset + variable.size);
      }
    }
    for (const Constant& constant : codes_[kernel]->constants) {
      if (constant.kind != Constant::Kind::Shared || shared_[constant.index].usedByFunctions)
        continue;
      if (kernelShared_[kernel].contains(constant.index)) continue;
      end = aligned(end, shared_[constant.index].alignment);
      kernelShared_[kernel][constant.index] = static_cast<std::uint32_t>(end);
      end += shared_[constant.index].size;
    }
    for (std::uint32_t f = 0; f < codes_.size(); ++f)
      codes_[kernel]->usesReserved |= seen[f] && codes_[f]->usesReserved;
    staticShared_[kernel] = static_cast<std::uint32_t>(end);
  }
}

std::uint32_t LinkedProgram::sharedBytes(std::size_t kernel, std::uint32_t dynamic) const {
  const std::uint32_t fixed = staticShared_[kernelFunctions_[kernel]];
  return dynamic ? static_cast<std::uint32_t>(aligned(fixed, 16)) + dynamic : fixed;
}

void LinkedProgram::describeKernels() {
  Stacks stacks{kUnboundedStack, std::vector<Stacks::Known>(codes_.size())};
  Stacks bounded{0, std::vector<Stacks::Known>(codes_.size())};
  std::uint32_t constantBytes = 0;
  for (const VariableInfo& variable : variables_)
    constantBytes += variable.constant ? static_cast<std::uint32_t>(variable.size) : 0;
  for (const std::uint32_t f : kernelFunctions_) {
    const Function& function = *definitions_[f];
    KernelInfo info;
    info.name = functionNames_[f];
    for (const ParameterPlace& place : codes_[f]->parameters) {
      info.parameters.push_back({place.offset, place.bytes});
      info.parameterBytes = place.offset + place.bytes;
    }
    info.staticSharedBytes = staticShared_[f];
    info.localBytes = stackBytes(f, bounded);
    info.stackBytes = stackBytes(f, stacks);
    info.constantBytes = constantBytes;
    const std::vector<bool> seen = reachable(f);
    for (std::uint32_t g = 0; g < codes_.size(); ++g)
      info.registers = std::max(info.registers, seen[g] ? codes_[g]->registers : 0);
    info.maxRegisters = function.maximumRegisters;
    info.minBlocksPerMultiprocessor = function.minimumBlocks;
    const auto& limit =
        function.requiredThreads[0] ? function.requiredThreads : function.maximumThreads;
    info.threadsBounded = limit[0] != 0;
    if (limit[0]) info.maxThreadsPerBlock = std::min(1024u, limit[0] * limit[1] * limit[2]);
    info.requiredClusterDim = function.requiredCluster;
    kernels_.push_back(std::move(info));
  }
}

std::uint32_t LinkedProgram::sharedOffset(std::uint32_t variable, const Code& code) const {
  if (shared_[variable].usedByFunctions) return shared_[variable].offset;
  for (const std::uint32_t kernel : kernelFunctions_) {
    if (codes_[kernel].get() == &code) return kernelShared_[kernel].at(variable);
  }
  return 0;
}

std::uint64_t LinkedProgram::addressOf(const Constant& constant, const Code& code) const {
  switch (constant.kind) {
    case Constant::Kind::Number: return constant.bits;
    case Constant::Kind::Variable: return addresses_[constant.index] + constant.bits;
    case Constant::Kind::Shared: return sharedOffset(constant.index, code) + constant.bits;
    case Constant::Kind::Function: return addressOfFunction(constant.index) + constant.bits;
    case Constant::Kind::DynamicShared: break;
  }
  for (const std::uint32_t kernel : kernelFunctions_) {
    if (codes_[kernel].get() == &code) return aligned(staticShared_[kernel], 16) + constant.bits;
  }
  return constant.bits;
}

void LinkedProgram::fillConstants(Code& code) {
  for (const Constant& constant : code.constants) {
    std::uint8_t* at = code.constantBank + constant.offset;
    const std::uint64_t bits = addressOf(constant, code);
    if (constant.bytes == 0) {
      const std::uint32_t truth = bits ? ~0u : 0;
      std::memcpy(at, &truth, sizeof truth);
    }
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(at + lane * constant.bytes, &bits, constant.bytes);
  }
}

void LinkedProgram::writeInitialValues(std::size_t index) {
  auto* memory = reinterpret_cast<std::uint8_t*>(addresses_[index]);
  if (!memory || !initials_[index].variable) return;
  const Variable& variable = *initials_[index].variable;
  std::memset(memory, 0, variable.bytes());
  const std::size_t element = bytesOf(variable.type);
  for (std::size_t i = 0; i < variable.initialisers.size(); ++i) {
    const Initialiser& initial = variable.initialisers[i];
    std::uint64_t bits = initial.bits;
    if (!initial.symbol.empty()) {
      const Symbol symbol = resolve(initials_[index].module, initial.symbol);
      if (symbol.kind == Symbol::Kind::Variable) bits += addresses_[symbol.index];
      if (symbol.kind == Symbol::Kind::Function) bits += addressOfFunction(symbol.index);
      if (initial.mask) bits = (bits & initial.mask) >> std::countr_zero(initial.mask);
    }
    std::memcpy(memory + i * element, &bits, std::min<std::size_t>(element, 8));
  }
}

void LinkedProgram::initialise() {
  for (const auto& code : codes_) fillConstants(*code);
  for (std::size_t i = 0; i < variables_.size(); ++i) writeInitialValues(i);
}

}  // namespace simulator::ptx
