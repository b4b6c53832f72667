// bra, brx, call, ret, exit, trap; and which opcode is decoded where.
#include <algorithm>
#include <unordered_map>

#include "native/simulator/ptx/machine/call.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/program/lowerer.h"
#include "native/simulator/ptx/runtime/builtins.h"

namespace simulator::ptx {

void Lowerer::branch(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.take("uni");
  const bool guarded = instruction.guard.predicate != Guard::kNone;
  Operation op = begin(instruction, guarded ? ptx::branch : jump);
  op.flags |= Operation::kEvenWithoutLanes;
  const std::uint32_t target = function_.labels.at(operand(instruction, 0).name);
  branches_.emplace_back(static_cast<std::uint32_t>(code_.operations.size()),
                         flow_.blockAt[target]);
  emit(op);
}

void Lowerer::branchByTable(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeAny({"idx", "uni"});
  Operation op = begin(instruction, ptx::branchByTable);
  use(op, 1, source(instruction, operand(instruction, 0), Type::U32));
  op.target = static_cast<std::uint32_t>(code_.tables.size());
  std::vector<std::uint32_t>& table = code_.tables.emplace_back();
  for (const std::string_view label : branchLabels(function_, instruction))
    table.push_back(flow_.blockAt[function_.labels.at(label)]);
  emit(op);
}

void Lowerer::leave(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.take("uni");
  const std::string_view opcode = modifiers.opcode();
  emit(begin(instruction, opcode == "ret" ? returnFromCall : opcode == "exit" ? exitThread : trap));
}

/// Memory of several GPUs at one address, of which there is none: cuMulticastCreate makes no
/// object.
void Lowerer::multicastMemory(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.clear();
  emit(begin(instruction, illegalAddress));
}

void Lowerer::sleep(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  Operation op = begin(instruction, sleepNanoseconds);
  use(op, 1, source(instruction, operand(instruction, 0), type));
  emit(op);
}

ParameterPlace Lowerer::argumentPlace(const Instruction& instruction, const Operand& operand) {
  if (operand.kind != Operand::Kind::Local ||
      function_.variables[operand.index].space != Space::Param) {
    malformed(instruction, "arguments and results of calls must be .param variables");
  }
  return {localOffset_[operand.index],
          static_cast<std::uint32_t>(function_.variables[operand.index].bytes())};
}

CallSite Lowerer::callSite(const Instruction& instruction, const std::vector<Operand>* results,
                           const std::vector<Operand>* arguments) {
  CallSite site;
  for (std::size_t i = 0; results && i < results->size(); ++i)
    site.results.push_back(argumentPlace(instruction, (*results)[i]));
  for (std::size_t i = 0; arguments && i < arguments->size(); ++i)
    site.arguments.push_back(argumentPlace(instruction, (*arguments)[i]));
  return site;
}

/// call{.uni} (results), function, (arguments){, prototype};
void Lowerer::call(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.take("uni");
  std::size_t at = 0;
  const bool hasResults = operand(instruction, 0).kind == Operand::Kind::List;
  const std::vector<Operand>* results = hasResults ? &instruction.operands[at++].elements : nullptr;
  const Operand& callee = operand(instruction, at++);
  const bool hasArguments =
      at < instruction.operands.size() && instruction.operands[at].kind == Operand::Kind::List;
  CallSite site =
      callSite(instruction, results, hasArguments ? &instruction.operands[at].elements : nullptr);
  Operation op;
  guard(op, instruction);
  op.target = static_cast<std::uint32_t>(code_.calls.size());
  if (callee.kind == Operand::Kind::Register) {
    op.run = callIndirect;
    use(op, 1, source(instruction, callee, Type::U64));
    site.function = CallSite::kIndirect;
    code_.callsIndirectly = true;
  } else {
    const Symbol symbol = program_.resolve(module_, callee.name);
    const Builtin builtin =
        symbol.kind == Symbol::Kind::Function ? Builtin::None : builtinNamed(callee.name);
    if (symbol.kind != Symbol::Kind::Function && builtin == Builtin::None) {
      throw Undefined(instruction.line, callee.name);
    }
    if (builtin >= Builtin::DeviceRuntime) program_.launches();
    op.run = builtin == Builtin::None ? callDirect : callBuiltin;
    op.detail = static_cast<std::uint32_t>(builtin);
    site.function = builtin == Builtin::None ? symbol.index : CallSite::kIndirect;
  }
  code_.calls.push_back(std::move(site));
  emit(op);
}

const Lowerer::Decoders& Lowerer::decoders() {
  using L = Lowerer;
  static const Decoders kDecoders{
      {"add", &L::add},
      {"addc", &L::add},
      {"sub", &L::add},
      {"subc", &L::add},
      {"mul", &L::multiply},
      {"mad", &L::multiplyAdd},
      {"madc", &L::multiplyAdd},
      {"mul24", &L::multiply24},
      {"mad24", &L::multiply24},
      {"fma", &L::fma},
      {"div", &L::divide},
      {"rem", &L::divide},
      {"min", &L::minimum},
      {"max", &L::minimum},
      {"abs", &L::unary},
      {"neg", &L::unary},
      {"rcp", &L::approximate},
      {"sqrt", &L::approximate},
      {"rsqrt", &L::approximate},
      {"sin", &L::approximate},
      {"cos", &L::approximate},
      {"lg2", &L::approximate},
      {"ex2", &L::approximate},
      {"tanh", &L::approximate},
      {"sad", &L::absoluteDifference},
      {"dp4a", &L::dotProduct},
      {"dp2a", &L::dotProduct},
      {"vadd", &L::videoOfOne},
      {"vsub", &L::videoOfOne},
      {"vadd2", &L::video},
      {"vadd4", &L::video},
      {"vsub2", &L::video},
      {"vsub4", &L::video},
      {"vavrg2", &L::video},
      {"vavrg4", &L::video},
      {"vabsdiff2", &L::video},
      {"vabsdiff4", &L::video},
      {"vmin2", &L::video},
      {"vmin4", &L::video},
      {"vmax2", &L::video},
      {"vmax4", &L::video},
      {"vset2", &L::video},
      {"vset4", &L::video},
      {"copysign", &L::copysign},
      {"testp", &L::testp},
      {"and", &L::logic},
      {"or", &L::logic},
      {"xor", &L::logic},
      {"not", &L::logic},
      {"cnot", &L::logic},
      {"shl", &L::shift},
      {"shr", &L::shift},
      {"shf", &L::funnelShift},
      {"popc", &L::count},
      {"clz", &L::count},
      {"bfind", &L::count},
      {"brev", &L::count},
      {"bfe", &L::field},
      {"bfi", &L::field},
      {"bmsk", &L::mask},
      {"szext", &L::mask},
      {"prmt", &L::permute},
      {"lop3", &L::lop3},
      {"fns", &L::fns},
      {"mov", &L::move},
      {"cvt", &L::convert},
      {"setp", &L::setPredicate},
      {"set", &L::setValue},
      {"selp", &L::select},
      {"slct", &L::selectBySign},
      {"ld", &L::load},
      {"ldu", &L::load},
      {"st", &L::store},
      {"atom", &L::atomic},
      {"red", &L::atomic},
      {"multimem", &L::multicastMemory},
      {"cvta", &L::convertAddress},
      {"isspacep", &L::isSpace},
      {"mapa", &L::mapRank},
      {"getctarank", &L::rankOf},
      {"createpolicy", &L::cachePolicy},
      {"cp", &L::copyAsync},
      {"alloca", &L::allocateLocal},
      {"stacksave", &L::allocateLocal},
      {"stackrestore", &L::allocateLocal},
      {"mbarrier", &L::memoryBarrierObject},
      {"membar", &L::fence},
      {"fence", &L::fence},
      {"prefetch", &L::ignored},
      {"prefetchu", &L::ignored},
      {"discard", &L::ignored},
      {"applypriority", &L::ignored},
      {"griddepcontrol", &L::ignored},
      {"setmaxnreg", &L::ignored},
      {"pmevent", &L::ignored},
      {"brkpt", &L::ignored},
      {"tex", &L::texture},
      {"tld4", &L::texture},
      {"txq", &L::imageQuery},
      {"suq", &L::imageQuery},
      {"suld", &L::surface},
      {"sust", &L::surface},
      {"sured", &L::surfaceReduction},
      {"wmma", &L::matrix},
      {"mma", &L::matrix},
      {"ldmatrix", &L::matrixRows},
      {"stmatrix", &L::matrixRows},
      {"movmatrix", &L::transposeMatrix},
      {"shfl", &L::shuffle},
      {"vote", &L::vote},
      {"match", &L::match},
      {"redux", &L::reduce},
      {"elect", &L::elect},
      {"activemask", &L::activeMask},
      {"bar", &L::barrier},
      {"barrier", &L::barrier},
      {"bra", &L::branch},
      {"brx", &L::branchByTable},
      {"ret", &L::leave},
      {"exit", &L::leave},
      {"trap", &L::leave},
      {"call", &L::call},
      {"nanosleep", &L::sleep},
  };
  return kDecoders;
}

Lowerer::Decoder Lowerer::decoderFor(std::string_view opcode) {
  const auto found = decoders().find(opcode);
  return found == decoders().end() ? nullptr : found->second;
}

std::vector<std::string_view> Lowerer::opcodes() {
  std::vector<std::string_view> names;
  for (const auto& [name, decoder] : decoders()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace simulator::ptx
