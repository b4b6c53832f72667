// Function bodies: declarations, labels, instructions, operands.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "native/simulator/ptx/syntax/parser_state.h"

namespace simulator::ptx {

void Parser::body(Function& function) {
  function.defined = true;
  scopes_.open();
  for (std::uint32_t i = 0; i < function.variables.size(); ++i)
    scopes_.add(function.variables[i].name, {Name::Kind::Variable, i});
  expect('{');
  scopes_.open();
  for (const std::size_t outside = scopes_.depth() - 1; scopes_.depth() > outside;)
    statement(function);
  scopes_.close();
}

void Parser::statement(Function& function) {
  if (token_.kind == Token::Kind::End)
    fail("the text ends inside function '" + std::string(function.name) + "'");
  if (accept(';')) return;
  if (accept('{')) {
    labelScopes_.push_back({function.instructions.size(), {}});
    return scopes_.open();
  }
  if (accept('}')) {
    if (!labelScopes_.empty()) closeLabels(function);
    return scopes_.close();
  }
  if (accept(".pragma")) return skipPragma();
  if (accept(".section")) return skipBraces();
  const Linkage how = linkage();
  Space space{};
  if (isSpace(token_, space)) {
    advance();
    if (space == Space::Register) return registers(function);
    return bodyVariables(function, space, how);
  }
  instruction(function);
}

void Parser::registers(Function& function) {
  const std::uint32_t lanes = accept(".v2") ? 2 : accept(".v4") ? 4 : 1;
  const Token word = expectWord("a type");
  const Type type = typeNamed(word.text.substr(1));
  if (type == Type::None || type == Type::Opaque)
    fail("registers of '" + std::string(word.text) + "' are not implemented by the simulated GPU");
  do {
    const Token name = expectWord("the name of a register");
    const auto first = static_cast<std::uint32_t>(function.registers.size());
    std::uint32_t count = lanes;
    if (lanes == 1 && accept('<')) {
      count = rangeCount(1u << 24);
      scopes_.addRange(name.text, {Name::Kind::Register, first}, count);
    } else {
      scopes_.add(name.text, {Name::Kind::Register, first, lanes});
    }
    function.registers.resize(first + count, type);
  } while (accept(','));
  expect(';');
}

std::uint32_t Parser::rangeCount(std::size_t most) {
  const std::int64_t count = expectInteger();
  if (count < 0 || static_cast<std::uint64_t>(count) > most) fail("too many names in a range");
  expect('>');
  return static_cast<std::uint32_t>(count);
}

void Parser::bodyVariables(Function& function, Space space, Linkage linkage) {
  auto index = static_cast<std::uint32_t>(function.variables.size());
  variables(space, linkage, function.variables);
  if (space == Space::Param) expect(';');
  while (index < function.variables.size()) {
    const Variable& variable = function.variables[index];
    const Name name{Name::Kind::Variable, index};
    if (variable.range) {
      scopes_.addRange(variable.name, name, variable.range);
      index += variable.range;
    } else {
      scopes_.add(variable.name, name);
      ++index;
    }
  }
}

Prototype Parser::prototype() {
  Prototype result;
  parameterList(result.returns);
  expectWord("_");
  parameterList(result.parameters);
  Function ignored;
  functionDirectives(ignored);
  expect(';');
  return result;
}

void Parser::label(Function& function, std::string_view name) {
  if (accept(".callprototype")) {
    function.prototypes[name] = prototype();
  } else if (token_.is(".branchtargets") || token_.is(".calltargets")) {
    advance();
    do {
      function.branchTargets[name].push_back(expectWord("a label").text);
    } while (accept(','));
    expect(';');
  } else {
    auto& labels = labelScopes_.empty() ? function.labels : labelScopes_.back().labels;
    labels[name] = static_cast<std::uint32_t>(function.instructions.size());
  }
}

/// A label of an inner scope may be there several times in a function: where inline assembly has
/// it. It gets a name that no text can have, also where instructions of the scope name it.
void Parser::closeLabels(Function& function) {
  const LabelScope scope = std::move(labelScopes_.back());
  labelScopes_.pop_back();
  for (const auto& [name, index] : scope.labels) {
    const std::string& unique =
        function.texts.emplace_front(std::string(name) + " " + std::to_string(index));
    function.labels[unique] = index;
    for (auto& [table, targets] : function.branchTargets)
      std::replace(targets.begin(), targets.end(), name, std::string_view(unique));
    for (std::size_t i = scope.firstInstruction; i < function.instructions.size(); ++i) {
      for (Operand& operand : function.instructions[i].operands) {
        if (operand.kind == Operand::Kind::Symbol && operand.name == name) operand.name = unique;
      }
    }
  }
}

std::uint32_t Parser::predicate() {
  const Token name = expectWord("a predicate");
  const Name found = scopes_.find(name.text);
  if (found.kind != Name::Kind::Register)
    throw Failure(name.line, "unknown predicate '" + std::string(name.text) + "'");
  return found.index;
}

void Parser::instruction(Function& function) {
  Instruction result;
  if (accept('@')) {
    result.guard.negated = accept('!');
    result.guard.predicate = predicate();
    if (function.registers[result.guard.predicate] != Type::Pred)
      fail("the guard of an instruction must be a predicate");
  }
  result.line = token_.line;
  result.text = expectWord("an instruction").text;
  if (result.guard.predicate == Guard::kNone && accept(':')) return label(function, result.text);
  inCall_ = result.text.starts_with("call");
  while (!accept(';')) {
    result.operands.push_back(operand(function));
    if (!token_.is(';')) expect(',');
  }
  const bool ofVectors = result.text.starts_with("mov.v2.") || result.text.starts_with("mov.v4.");
  if (ofVectors) return vectorMove(function, result);
  function.instructions.push_back(std::move(result));
}

/// mov.v2 and mov.v4 copy lane by lane. All lanes are read before the first one is written.
void Parser::vectorMove(Function& function, const Instruction& move) {
  const std::string_view typeName = move.text.substr(std::string_view("mov.v2.").size());
  const std::size_t lanes = move.text[5] == '2' ? 2 : 4;
  const auto& operands = move.operands;
  if (operands.size() != 2 || operands[0].elements.size() != lanes ||
      operands[1].elements.size() != lanes)
    fail("'" + std::string(move.text) + "' copies from a vector to a vector");
  const auto first = static_cast<std::uint32_t>(function.registers.size());
  function.registers.resize(first + lanes, typeNamed(typeName));
  Instruction copy = move;
  copy.text = function.texts.emplace_front("mov." + std::string(typeName));
  const auto add = [&](const Operand& to, const Operand& from) {
    copy.operands = {to, from};
    function.instructions.push_back(copy);
  };
  std::vector<Operand> between(lanes);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    between[i].kind = Operand::Kind::Register;
    between[i].index = first + i;
    add(between[i], operands[1].elements[i]);
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    if (operands[0].elements[i].kind != Operand::Kind::Sink)
      add(operands[0].elements[i], between[i]);
  }
}

Operand Parser::operand(Function& function) {
  Operand first = primary(function);
  if (!accept('|')) return first;
  Operand pair;
  pair.kind = Operand::Kind::Pair;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(primary(function));
  return pair;
}

Operand Parser::group(Function& function, Operand::Kind kind, char close) {
  Operand result;
  result.kind = kind;
  while (!accept(close)) {
    result.elements.push_back(operand(function));
    if (!token_.is(close)) expect(',');
  }
  return result;
}

/// Whether a '!' is that of a constant expression. Otherwise it negates a predicate.
bool Parser::beginsConstant() const {
  Lexer ahead = lexer_;
  Token next = ahead.next();
  while (next.is('!')) next = ahead.next();
  return next.kind != Token::Kind::Word || next.is("WARP_SZ");
}

Operand Parser::primary(Function& function) {
  const Level level(*this);
  if (token_.is('!') && !beginsConstant()) {
    advance();
    Operand result = primary(function);
    result.negated = !result.negated;
    return result;
  }
  if (accept('{')) return group(function, Operand::Kind::Vector, '}');
  if (inCall_ && accept('(')) return group(function, Operand::Kind::List, ')');
  if (accept('[')) return group(function, Operand::Kind::Address, ']');
  if (token_.kind == Token::Kind::Word && !token_.is("WARP_SZ")) return named(function, advance());
  const Constant value = constant();
  Operand result;
  result.kind = value.kind;
  result.bits = value.bits;
  return result;
}

/// @param array a variable of the function or, declared before it, of the module
std::int64_t Parser::elementBytes(const Function& function, const Operand& array) {
  if (array.kind == Operand::Kind::Local)
    return static_cast<std::int64_t>(bytesOf(function.variables[array.index].type));
  for (const Variable& variable : module_->variables) {
    if (variable.name == array.name) return static_cast<std::int64_t>(bytesOf(variable.type));
  }
  fail("'" + std::string(array.name) + "' is not an array");
}

Operand Parser::named(Function& function, Token name) {
  Operand result;
  result.name = name.text;
  if (name.text == "_") return result;
  const Name found = scopes_.findLane(name.text);
  if (found.lanes > 1) {
    result.kind = Operand::Kind::Vector;
    result.elements.resize(found.lanes);
    for (std::uint32_t i = 0; i < found.lanes; ++i) {
      result.elements[i].kind = Operand::Kind::Register;
      result.elements[i].index = found.index + i;
    }
    return result;
  }
  result.index = found.index;
  if (found.kind == Name::Kind::Register) {
    result.kind = Operand::Kind::Register;
  } else if (found.kind == Name::Kind::Variable) {
    result.kind = Operand::Kind::Local;
  } else {
    result.kind = name.text[0] == '%' ? Operand::Kind::Special : Operand::Kind::Symbol;
  }
  if (accept('[')) element(function, result);
  result.offset += displacement();
  return result;
}

/// array[3], array[%r1] or array[%r1 + 3], behind the bracket.
void Parser::element(const Function& function, Operand& array) {
  const std::int64_t bytes = elementBytes(function, array);
  array.element = true;
  if (token_.kind == Token::Kind::Word) {
    const Name found = scopes_.find(token_.text);
    if (found.kind != Name::Kind::Register)
      fail("the index '" + std::string(token_.text) + "' is not a register or a number");
    Operand index;
    index.kind = Operand::Kind::Register;
    index.name = advance().text;
    index.index = found.index;
    array.elements.push_back(index);
    array.bits = static_cast<std::uint64_t>(bytes);
    array.offset = displacement() * bytes;
  } else {
    array.offset = static_cast<std::int64_t>(integer(constant())) * bytes;
  }
  expect(']');
}

}  // namespace simulator::ptx
