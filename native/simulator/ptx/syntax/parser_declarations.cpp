// Variables, initialisers, function headers.
#include <utility>

#include "native/simulator/ptx/syntax/parser.h"
#include "native/simulator/ptx/syntax/parser_state.h"

namespace simulator::ptx {

Linkage Parser::linkage() {
  Linkage result = Linkage::Internal;
  for (;;) {
    if (accept(".visible")) {
      result = Linkage::Visible;
    } else if (accept(".extern")) {
      result = Linkage::Extern;
    } else if (accept(".weak")) {
      result = Linkage::Weak;
    } else if (accept(".common")) {
      result = Linkage::Common;
    } else {
      return result;
    }
  }
}

bool Parser::isSpace(const Token& token, Space& space) {
  static constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {".global", Space::Global}, {".shared", Space::Shared}, {".local", Space::Local},
      {".const", Space::Const},   {".param", Space::Param},   {".reg", Space::Register},
      {".tex", Space::Global}};
  for (const auto& [name, value] : kSpaces) {
    if (token.is(name)) {
      space = value;
      return true;
    }
  }
  return false;
}

Initialiser Parser::symbolValue(Token name) {
  const Level level(*this);
  Initialiser value;
  if (name.text == "generic") {
    expect('(');
    value = symbolValue(expectWord("a name"));
    expect(')');
  } else {
    value.symbol = name.text;
  }
  value.bits += static_cast<std::uint64_t>(displacement());
  return value;
}

Initialiser Parser::initialValue(Type type) {
  if (token_.kind == Token::Kind::Word && !token_.is("WARP_SZ")) return symbolValue(advance());
  const Constant number = constant();
  // 0xFF00(symbol): some bits of an address.
  if (number.kind == Operand::Kind::Integer && accept('(')) {
    Initialiser value = symbolValue(expectWord("a name"));
    expect(')');
    value.mask = number.bits;
    return value;
  }
  Initialiser value;
  value.bits = literalBits(number.kind, number.bits, type);
  return value;
}

void Parser::initialiser(Variable& variable) {
  const Level level(*this);
  if (!accept('{')) {
    variable.initialisers.push_back(initialValue(variable.type));
    return;
  }
  while (!accept('}')) {
    if (token_.is('{')) {
      initialiser(variable);
    } else {
      variable.initialisers.push_back(initialValue(variable.type));
    }
    accept(',');
  }
}

void Parser::dimensions(Variable& variable) {
  while (accept('[')) {
    variable.array = true;
    if (accept(']')) {
      variable.unsized = true;
      continue;
    }
    variable.elements *= static_cast<std::uint64_t>(expectInteger());
    expect(']');
  }
}

Variable Parser::variable(Space space, Linkage linkage, Type type, std::uint64_t alignment,
                          std::uint64_t lanes) {
  Variable result;
  result.space = space;
  result.linkage = linkage;
  result.type = type;
  result.line = token_.line;
  result.elements = lanes;
  result.alignment = alignment ? alignment : lanes * (bytesOf(type) ? bytesOf(type) : 1);
  result.name = expectWord("a name").text;
  if (scopes_.depth() != 0 && accept('<')) {
    result.range = rangeCount(kMostRange);
    return result;
  }
  dimensions(result);
  if (accept('=')) {
    initialiser(result);
    if (result.unsized) result.elements = result.initialisers.size();
    if (result.initialisers.size() > result.elements)
      fail("too many initial values for '" + std::string(result.name) + "'");
    if (result.unsized) result.unsized = false;
  }
  if (result.unsized) result.elements = 0;
  return result;
}

void Parser::variables(Space space, Linkage linkage, std::vector<Variable>& into) {
  std::uint64_t alignment = 0, lanes = 1;
  Type type = Type::None;
  bool managed = false;
  while (type == Type::None) {
    const Token word = expectWord("a type");
    if (word.text == ".align") {
      alignment = static_cast<std::uint64_t>(expectInteger());
    } else if (word.text == ".v2" || word.text == ".v4") {
      lanes = word.text == ".v2" ? 2 : 4;
    } else if (word.text == ".attribute") {
      managed |= skipParentheses(".managed");
    } else if (word.text == ".ptr" || word.text == ".const" || word.text == ".global" ||
               word.text == ".shared" || word.text == ".local") {
      continue;
    } else {
      type = word.text[0] == '.' ? typeNamed(word.text.substr(1)) : Type::None;
      if (type == Type::None) fail("'" + std::string(word.text) + "' is not a type");
    }
  }
  if (token_.is(".ptr")) {  // .param .u64 .ptr .global .align 4 name
    while (token_.kind == Token::Kind::Word && token_.text[0] == '.') {
      if (advance().text == ".align") expectInteger();
    }
  }
  do {
    Variable next = variable(space, linkage, type, alignment, lanes);
    next.managed = managed;
    into.insert(into.end(), next.range ? next.range : 1, next);
  } while (space != Space::Param && accept(','));
  if (space != Space::Param) expect(';');
}

void Parser::parameterList(std::vector<Variable>& into) {
  if (!accept('(')) return;
  while (!accept(')')) {
    Space space{};
    if (!isSpace(token_, space) || (space != Space::Param && space != Space::Register))
      fail("expected .param or .reg");
    advance();
    if (space == Space::Register)
      fail("parameters in registers are not implemented by the simulated GPU");
    variables(Space::Param, Linkage::Internal, into);
    accept(',');
  }
}

std::array<std::uint32_t, 3> Parser::threeNumbers() {
  std::array<std::uint32_t, 3> result{1, 1, 1};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    result[axis] = static_cast<std::uint32_t>(expectInteger());
    if (!accept(',')) break;
  }
  return result;
}

void Parser::functionDirectives(Function& function) {
  while (token_.kind == Token::Kind::Word) {
    if (accept(".maxntid")) {
      function.maximumThreads = threeNumbers();
    } else if (accept(".reqntid")) {
      function.requiredThreads = threeNumbers();
    } else if (accept(".reqnctapercluster")) {
      function.requiredCluster = threeNumbers();
    } else if (accept(".maxnreg")) {
      function.maximumRegisters = static_cast<std::uint32_t>(expectInteger());
    } else if (accept(".minnctapersm")) {
      function.minimumBlocks = static_cast<std::uint32_t>(expectInteger());
    } else if (accept(".maxnctapersm") || accept(".maxclusterrank") || accept(".abi_preserve") ||
               accept(".abi_preserve_control")) {
      expectInteger();
    } else if (accept(".pragma")) {
      skipPragma();
    } else if (accept(".attribute")) {
      skipParentheses();
    } else if (!accept(".noreturn") && !accept(".explicitcluster") &&
               !accept(".blocksareclusters") && !accept(".unified")) {
      fail("'" + std::string(token_.text) + "' is not a directive of a function");
    }
  }
}

void Parser::function(Module& module, Linkage linkage, bool entry) {
  Function result;
  result.linkage = linkage;
  result.entry = entry;
  while (accept(".attribute")) skipParentheses();
  parameterList(result.variables);
  result.returns = static_cast<std::uint32_t>(result.variables.size());
  result.line = token_.line;
  result.name = expectWord("the name of a function").text;
  parameterList(result.variables);
  result.parameters = static_cast<std::uint32_t>(result.variables.size()) - result.returns;
  functionDirectives(result);
  if (!accept(';')) body(result);
  module.functions.push_back(std::move(result));
}

}  // namespace simulator::ptx
