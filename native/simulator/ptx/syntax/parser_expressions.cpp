// Constant expressions: numbers of operands, displacements and initial values.
#include <string>
#include <utility>

#include "native/simulator/ptx/syntax/parser_state.h"

namespace simulator::ptx {
namespace {

/// Precedence of a binary operator, 0 for other tokens. No compiler writes comparisons, logical
/// operators or ?:, so those are not implemented.
int precedence(const Token& token) {
  static constexpr std::pair<std::string_view, int> kOperators[] = {
      {"*", 6}, {"/", 6}, {"+", 5}, {"-", 5}, {"<<", 4}, {">>", 4}, {"&", 3}, {"^", 2}, {"|", 1}};
  if (token.kind != Token::Kind::Punctuation) return 0;
  for (const auto& [text, level] : kOperators) {
    if (token.text == text) return level;
  }
  return 0;
}

}  // namespace

Parser::Constant Parser::constantOperand() {
  const Level level(*this);
  if (accept('+')) return constantOperand();
  if (accept('-')) {
    Constant value = constantOperand();
    if (value.kind == Operand::Kind::Integer) {
      value.bits = 0 - value.bits;
    } else {
      value.bits ^= value.kind == Operand::Kind::Float32 ? 1ull << 31 : 1ull << 63;
    }
    return value;
  }
  if (accept('~')) return {Operand::Kind::Integer, ~integer(constantOperand()), true};
  if (accept('(')) {
    const Constant value = constant();
    expect(')');
    return value;
  }
  if (accept("WARP_SZ")) return {Operand::Kind::Integer, 32, false};
  const Token token = advance();
  switch (token.kind) {
    case Token::Kind::Integer:
      return {Operand::Kind::Integer, token.bits, token.text.ends_with('U') || token.bits >> 63};
    case Token::Kind::FloatBits32: return {Operand::Kind::Float32, token.bits, false};
    case Token::Kind::Float:
    case Token::Kind::FloatBits64: return {Operand::Kind::Float, token.bits, false};
    default:
      throw Failure(token.line, "unexpected '" + std::string(token.text) + "' among operands");
  }
}

std::uint64_t Parser::integer(const Constant& value) const {
  if (value.kind != Operand::Kind::Integer)
    fail("operators on floating-point constants are not implemented by the simulated GPU");
  return value.bits;
}

Parser::Constant Parser::binary(char op, const Constant& left, const Constant& right) const {
  const std::uint64_t a = integer(left), b = integer(right);
  const auto signedA = static_cast<std::int64_t>(a), signedB = static_cast<std::int64_t>(b);
  const bool isUnsigned = left.isUnsigned || right.isUnsigned;
  const auto of = [](std::uint64_t bits, bool isUnsigned) {
    return Constant{Operand::Kind::Integer, bits, isUnsigned};
  };
  if ((op == '<' || op == '>') && b > 63) fail("a constant is shifted by more than 63 bits");
  switch (op) {
    case '*': return of(a * b, isUnsigned);
    case '/':
      if (b == 0) fail("a constant is divided by 0");
      if (isUnsigned) return of(a / b, true);
      // The quotient of the least integer and -1 does not fit.
      return of(signedB == -1 ? 0 - a : static_cast<std::uint64_t>(signedA / signedB), false);
    case '+': return of(a + b, isUnsigned);
    case '-': return of(a - b, isUnsigned);
    case '<': return of(a << b, left.isUnsigned);
    case '>':
      return of(left.isUnsigned ? a >> b : static_cast<std::uint64_t>(signedA >> b),
                left.isUnsigned);
    case '&': return of(a & b, true);
    case '^': return of(a ^ b, true);
    default: return of(a | b, true);
  }
}

Parser::Constant Parser::constant(int lowest) {
  const Level level(*this);
  Constant left = constantOperand();
  for (int rank = precedence(token_); rank >= lowest; rank = precedence(token_)) {
    const char op = advance().text[0];
    left = binary(op, left, constant(rank + 1));
  }
  return left;
}

/// The terms behind a register or a name, each with its sign: + 4 * 2 - 1.
std::int64_t Parser::displacement() {
  if (!token_.is('+') && !token_.is('-')) return 0;
  return static_cast<std::int64_t>(integer(constant()));
}

}  // namespace simulator::ptx
