// Cuts PTX text into tokens. Comments, .loc and .file are gone after it.
#pragma once

#include <cstdint>
#include <string_view>

namespace simulator::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    End,
    Word,
    Integer,
    Float,
    FloatBits32,
    FloatBits64,
    String,
    Punctuation
  };
  Kind kind = Kind::End;
  std::uint32_t line = 0;
  /// Word with its dots ("ld.global.v4.f32", ".reg", "%tid.x"); String without quotes; Integer with
  /// its U.
  std::string_view text;
  std::uint64_t bits =
      0;  ///< Integer: the value; Float: bits of the double; FloatBits*: as written
  bool is(char punctuation) const {
    return kind == Kind::Punctuation && text.size() == 1 && text[0] == punctuation;
  }
  bool is(std::string_view word) const { return kind == Kind::Word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// The next token; kind End, again and again, after the last. Throws Failure for a character PTX
  /// has no use for.
  Token next();

 private:
  void skipBlanks();
  void skipLine();
  void skipPosition(int words);
  Token word();
  Token number();
  Token string();
  Token token(Token::Kind kind, std::size_t begin) const;
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace simulator::ptx
