#include "native/simulator/ptx/syntax/parser.h"

#include <bit>
#include <cmath>

#include "native/simulator/ptx/syntax/parser_state.h"

namespace simulator::ptx {

Token Parser::advance() {
  const Token last = token_;
  token_ = lexer_.next();
  return last;
}

bool Parser::accept(char punctuation) {
  if (!token_.is(punctuation)) return false;
  advance();
  return true;
}

bool Parser::accept(std::string_view word) {
  if (!token_.is(word)) return false;
  advance();
  return true;
}

void Parser::expect(char punctuation) {
  if (!accept(punctuation))
    fail(std::string("expected '") + punctuation + "' before '" + std::string(token_.text) + "'");
}

Token Parser::expectWord(const char* what) {
  if (token_.kind != Token::Kind::Word)
    fail(std::string("expected ") + what + " before '" + std::string(token_.text) + "'");
  return advance();
}

std::int64_t Parser::expectInteger() {
  const bool negative = accept('-');
  if (token_.kind != Token::Kind::Integer)
    fail("expected a number before '" + std::string(token_.text) + "'");
  const auto value = static_cast<std::int64_t>(advance().bits);
  return negative ? -value : value;
}

void Parser::skipBraces() {
  while (!token_.is('{')) {
    if (token_.kind == Token::Kind::End) fail("the text ends inside a .section");
    advance();
  }
  for (int depth = 0;;) {
    const Token token = advance();
    if (token.kind == Token::Kind::End) fail("the text ends inside a .section");
    depth += token.is('{') - token.is('}');
    if (depth == 0) return;
  }
}

void Parser::skipPragma() {
  while (!accept(';')) {
    if (token_.kind == Token::Kind::End) fail("the text ends inside a .pragma");
    advance();
  }
}

bool Parser::skipParentheses(std::string_view wanted) {
  bool found = false;
  if (!token_.is('(')) return found;
  for (int depth = 0;;) {
    const Token token = advance();
    if (token.kind == Token::Kind::End) fail("the text ends inside parentheses");
    found |= !wanted.empty() && token.is(wanted);
    depth += token.is('(') - token.is(')');
    if (depth == 0) return found;
  }
}

void Parser::moduleItem(Module& module) {
  if (accept(".version")) {
    const Token number = advance();
    if (number.kind != Token::Kind::Float) fail("expected a version such as 9.0");
    module.version =
        static_cast<std::uint32_t>(std::lround(std::bit_cast<double>(number.bits) * 10));
    return;
  }
  if (accept(".target")) {
    module.target = expectWord("a target").text;
    while (accept(',')) expectWord("a target option");
    return;
  }
  if (accept(".address_size")) {
    if (expectInteger() != 64) fail("only .address_size 64 exists on this GPU");
    return;
  }
  if (accept(".section")) return skipBraces();
  if (accept(".pragma")) return skipPragma();
  if (accept(".alias")) {
    const Token alias = expectWord("a name");
    expect(',');
    module.aliases[alias.text] = expectWord("a name").text;
    return expect(';');
  }
  const Linkage how = linkage();
  if (accept(".entry")) return function(module, how, true);
  if (accept(".func")) return function(module, how, false);
  Space space{};
  if (!isSpace(token_, space))
    fail("unexpected '" + std::string(token_.text) + "' at module scope");
  advance();
  variables(space, how, module.variables);
}

Module Parser::module() {
  Module result;
  module_ = &result;
  while (token_.kind != Token::Kind::End) moduleItem(result);
  if (result.version == 0)
    throw Failure(1, "the text does not begin with .version", CUDA_ERROR_INVALID_PTX);
  return result;
}

Module parse(std::string_view text) { return Parser(text).module(); }

std::uint64_t literalBits(Operand::Kind kind, std::uint64_t bits, Type type) {
  if (kind == Operand::Kind::Integer) return bits;
  if (kind == Operand::Kind::Float32) {
    if (type != Type::F64) return bits;
    return std::bit_cast<std::uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  }
  if (type == Type::F64 || bytesOf(type) == 8) return bits;
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
}

}  // namespace simulator::ptx
