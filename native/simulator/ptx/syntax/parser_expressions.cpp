// Constant expressions: numbers of operands, displacements and initial values. Their values and
// types are those of ptxas 13.0.
#include <bit>
#include <string>
#include <utility>

#include "native/simulator/ptx/syntax/parser_state.h"

namespace simulator::ptx {
namespace {

/// Precedence of a binary operator, 0 for other tokens. The % of a remainder is a word: "7%3" is a
/// number and a register, also for ptxas.
int precedence(const Token& token) {
  static constexpr std::pair<std::string_view, int> kOperators[] = {
      {"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},  {"-", 9},  {"<<", 8},
      {">>", 8}, {"<", 7},  {">", 7},  {"<=", 7}, {">=", 7}, {"==", 6},
      {"!=", 6}, {"&", 5},  {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};
  if (token.kind != Token::Kind::Punctuation && token.kind != Token::Kind::Word) return 0;
  for (const auto& [text, level] : kOperators) {
    if (token.text == text) return level;
  }
  return 0;
}

constexpr std::string_view kDividedByZero = "a constant is divided by 0";

template <class T>
bool holds(std::string_view op, T a, T b) {
  return op == "<"    ? a < b
         : op == ">"  ? a > b
         : op == "<=" ? a <= b
         : op == ">=" ? a >= b
         : op == "==" ? a == b
                      : a != b;
}

bool isComparison(std::string_view op) {
  return op == "<" || op == ">" || op == "<=" || op == ">=" || op == "==" || op == "!=";
}

}  // namespace

Parser::Constant Parser::inParentheses() {
  const bool toSigned = accept(".s64");
  if (toSigned || accept(".u64")) {
    expect(')');
    return {Operand::Kind::Integer, integer(constantOperand()), !toSigned};
  }
  const Constant value = constant();
  expect(')');
  return value;
}

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
  if (accept('!')) return {Operand::Kind::Integer, integer(constantOperand()) == 0, false};
  if (accept('(')) return inParentheses();
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
  if (value.kind != Operand::Kind::Integer) fail("this operator requires integer constants");
  return value.bits;
}

Parser::Constant Parser::ofIntegers(std::string_view op, const Constant& left,
                                    const Constant& right) const {
  const std::uint64_t a = left.bits, b = right.bits;
  const auto signedA = static_cast<std::int64_t>(a), signedB = static_cast<std::int64_t>(b);
  const bool isUnsigned = left.isUnsigned || right.isUnsigned;
  const auto of = [](std::uint64_t bits, bool isUnsigned) {
    return Constant{Operand::Kind::Integer, bits, isUnsigned};
  };
  if (isComparison(op))
    return of(isUnsigned ? holds(op, a, b) : holds(op, signedA, signedB), false);
  if (op == "&&") return of(a != 0 && b != 0, false);
  if (op == "||") return of(a != 0 || b != 0, false);
  if ((op == "<<" || op == ">>") && b > 63) fail("a constant is shifted by more than 63 bits");
  if ((op == "/" || op == "%") && b == 0) fail(std::string(kDividedByZero));
  switch (op[0]) {
    case '*': return of(a * b, isUnsigned);
    case '/':
      if (isUnsigned) return of(a / b, true);
      // The quotient of the least integer and -1 does not fit.
      return of(signedB == -1 ? 0 - a : static_cast<std::uint64_t>(signedA / signedB), false);
    case '%': return of(a % b, true);
    case '+': return of(a + b, isUnsigned);
    case '-': return of(a - b, isUnsigned);
    case '<': return of(a << b, left.isUnsigned);
    case '>':
      return of(left.isUnsigned ? a >> b : static_cast<std::uint64_t>(signedA >> b),
                left.isUnsigned);
    case '&': return of(a & b, isUnsigned);
    case '^': return of(a ^ b, isUnsigned);
    default: return of(a | b, isUnsigned);
  }
}

Parser::Constant Parser::ofFloats(std::string_view op, double left, double right) const {
  const auto of = [](double value) {
    return Constant{Operand::Kind::Float, std::bit_cast<std::uint64_t>(value), false};
  };
  if (isComparison(op)) return {Operand::Kind::Integer, holds(op, left, right), false};
  if (op == "*") return of(left * right);
  if (op == "+") return of(left + right);
  if (op == "-") return of(left - right);
  if (op != "/") fail("this operator requires integer constants");
  if (right == 0) fail(std::string(kDividedByZero));
  return of(left / right);
}

Parser::Constant Parser::binary(std::string_view op, const Constant& left,
                                const Constant& right) const {
  if (left.kind != right.kind || left.kind == Operand::Kind::Float32)
    fail("the operands of '" + std::string(op) + "' differ in type, or are hexadecimal floats");
  if (left.kind == Operand::Kind::Integer) return ofIntegers(op, left, right);
  return ofFloats(op, std::bit_cast<double>(left.bits), std::bit_cast<double>(right.bits));
}

Parser::Constant Parser::binaries(int lowest) {
  Constant left = constantOperand();
  for (int rank = precedence(token_); rank >= lowest; rank = precedence(token_)) {
    const std::string_view op = advance().text;
    left = binary(op, left, binaries(rank + 1));
  }
  return left;
}

/// Both results of a condition are evaluated. The chosen one keeps its signedness.
Parser::Constant Parser::constant() {
  const Level level(*this);
  const Constant condition = binaries(1);
  if (!accept('?')) return condition;
  const bool chosen = integer(condition) != 0;
  const Constant first = constant();
  expect(':');
  const Constant second = constant();
  if (first.kind != second.kind) fail("the results of '?' differ in type");
  return chosen ? first : second;
}

/// The terms behind a register or a name, each with its sign: + 4 * 2 - 1.
std::int64_t Parser::displacement() {
  if (!token_.is('+') && !token_.is('-')) return 0;
  return static_cast<std::int64_t>(integer(constant()));
}

}  // namespace simulator::ptx
