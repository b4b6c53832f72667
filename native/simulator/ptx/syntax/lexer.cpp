#include "native/simulator/ptx/syntax/lexer.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <string>

#include "native/simulator/ptx/syntax/failure.h"

namespace simulator::ptx {
namespace {

constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool isWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

constexpr int digitValue(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

Token Lexer::token(Token::Kind kind, std::size_t begin) const {
  return {kind, line_, text_.substr(begin, at_ - begin), 0};
}

void Lexer::skipLine() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
}

void Lexer::skipBlanks() {
  for (;; ++at_) {
    const char c = peek();
    if (c == '\n') {
      ++line_;
    } else if (c == '/' && peek(1) == '/') {
      skipLine();
      --at_;
    } else if (c == '/' && peek(1) == '*') {
      for (at_ += 2; at_ < text_.size() && !(peek() == '*' && peek(1) == '/'); ++at_)
        line_ += peek() == '\n';
      ++at_;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f') {
      return;
    }
  }
}

Token Lexer::word() {
  const std::size_t begin = at_;
  const bool directive = peek() == '.';  // ends before the next dot: ".reg.b16" is two words
  for (;;) {
    if (isWord(peek()) && !(directive && peek() == '.' && at_ > begin)) {
      ++at_;
    } else if (peek() == ':' && peek(1) == ':') {
      at_ += 2;  // ".shared::cluster" is one word
    } else {
      return token(Token::Kind::Word, begin);
    }
  }
}

Token Lexer::number() {
  const std::size_t begin = at_;
  const char mark = peek() == '0' ? peek(1) : '\0';
  const bool single = mark == 'f' || mark == 'F', twice = mark == 'd' || mark == 'D',
             hexadecimal = mark == 'x' || mark == 'X';
  const bool binary = mark == 'b' || mark == 'B';
  std::uint64_t value = 0;
  if (single || twice || hexadecimal || binary) {
    const int base = binary ? 2 : 16;
    const std::size_t limit = single ? 8 : twice ? 16 : 64;
    at_ += 2;
    for (std::size_t n = 0; n < limit && digitValue(peek()) < base; ++n, ++at_)
      value = value * base + digitValue(peek());
    if (peek() == 'U') ++at_;
    Token result = token(single  ? Token::Kind::FloatBits32
                         : twice ? Token::Kind::FloatBits64
                                 : Token::Kind::Integer,
                         begin);
    result.bits = value;
    return result;
  }
  while (isDigit(peek())) ++at_;
  if (peek() == '.' || peek() == 'e' || peek() == 'E') {
    char* end = nullptr;
    const std::string digits(text_.substr(begin, 400));
    const double number = std::strtod(digits.c_str(), &end);
    at_ = begin + (end - digits.c_str());
    Token result = token(Token::Kind::Float, begin);
    result.bits = std::bit_cast<std::uint64_t>(number);
    return result;
  }
  Token result = token(Token::Kind::Integer, begin);
  const int base = result.text.size() > 1 && result.text[0] == '0' ? 8 : 10;
  for (const char c : result.text) value = value * base + digitValue(c);
  if (peek() == 'U') result.text = text_.substr(begin, ++at_ - begin);
  result.bits = value;
  return result;
}

Token Lexer::string() {
  const std::size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) throw Failure(line_, "the string that opens here does not end");
  Token result = token(Token::Kind::String, begin);
  ++at_;
  return result;
}

/// `.file 1 "name", 2, 3` and `.loc 1 2 3, function_name NAME + 4, inlined_at 1 2 3`: neither a
/// line nor a semicolon ends them.
void Lexer::skipPosition(int words) {
  while (words-- > 0) next();
  for (skipBlanks(); peek() == ','; skipBlanks()) {
    ++at_;
    const Token word = next();
    if (word.is("inlined_at")) next(), next(), next();
    if (!word.is("function_name")) continue;
    next();
    skipBlanks();
    if (peek() == '+') ++at_, next();
  }
}

Token Lexer::next() {
  for (;;) {
    skipBlanks();
    const char c = peek();
    if (at_ >= text_.size() || c == '\0') return {Token::Kind::End, line_, {}, 0};
    if (isDigit(c)) return number();
    if (c == '"') return string();
    if (isWord(c)) {
      const Token result = word();
      if (result.text != ".loc" && result.text != ".file") return result;
      skipPosition(result.text == ".loc" ? 3 : 2);
      continue;
    }
    constexpr std::string_view kPunctuation = "{}()[]<>,;:@!|+-*/=~&^?";
    if (kPunctuation.find(c) == std::string_view::npos)
      throw Failure(line_, std::string("unexpected character '") + c + "'");
    constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    const std::size_t begin = at_++;
    for (const std::string_view pair : kPairs) {
      if (c == pair[0] && peek() == pair[1]) return ++at_, token(Token::Kind::Punctuation, begin);
    }
    return token(Token::Kind::Punctuation, begin);
  }
}

}  // namespace simulator::ptx
