#include "native/worker/images/ptx_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "native/worker/images/memory_sum.h"

namespace worker {

namespace {

/// How the driver packs variables is unknown, so each counts as an allocation of its own. Sizes are
/// multiples of kGranularity up to kSmall, and of kPage above.
constexpr std::uint64_t kGranularity = 512;
constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

std::uint64_t multiply(std::uint64_t one, std::uint64_t other) {
  return one == 0 || other == 0           ? 0
         : one > kMostImageMemory / other ? kMostImageMemory
                                          : one * other;
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// Whether the character may follow the first one of a name.
bool isPart(char c) { return isDigit(c) || isLetter(c) || c == '_' || c == '$'; }

int digit(char c) {
  if (isDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

struct Refusal {
  std::uint32_t line;
  const char* reason;
};

struct Token {
  enum class Kind : std::uint8_t { end, name, directive, integer, real, string, mark };
  Kind kind = Kind::end;
  bool glued = false;  ///< no blank or comment precedes the token
  std::string_view text;
  std::uint64_t value = 0;  ///< value of an integer

  bool is(char mark) const { return kind == Kind::mark && text.front() == mark; }
  bool is(std::string_view word) const {
    return (kind == Kind::directive || kind == Kind::name) && text == word;
  }
};

/// Splits text into tokens. `.global.b8` is two directives; `ld.global` is a name and a glued
/// directive.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    const std::size_t before = at_;
    skipBlanks();
    Token token;
    token.glued = at_ == before && before > 0;
    begin_ = at_;
    const char c = peek();
    if (at_ == text_.size()) return token;
    if (isDigit(c))
      number(token);
    else if (c == '"')
      string(token);
    else if (c == '.' || (c == ':' && peek(1) == ':'))
      directive(token);
    else if (isLetter(c) || ((c == '_' || c == '$' || c == '%') && isPart(peek(1))))
      name(token);
    else
      mark(token);
    token.text = text_.substr(begin_, at_ - begin_);
    return token;
  }

  [[noreturn]] void refuse(const char* reason) const { throw Refusal{line_, reason}; }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skipBlanks() {
    for (;;) {
      const char c = peek();
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        ++at_;
      else if (c == '/' && peek(1) == '/')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == '/' && peek(1) == '*')
        skipComment();
      else
        return;
    }
  }

  void skipComment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == text_.npos) refuse("a comment does not end");
    line_ += static_cast<std::uint32_t>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
    at_ = end + 2;
  }

  void name(Token& token) {
    token.kind = Token::Kind::name;
    for (++at_; isPart(peek());) ++at_;
  }

  /// Reads `.global`, or the `::cluster` of `.shared::cluster`.
  void directive(Token& token) {
    token.kind = Token::Kind::directive;
    at_ += peek() == '.' ? 1 : 2;
    if (!isPart(peek())) refuse("a '.' or '::' has no name behind it");
    while (isPart(peek())) ++at_;
  }

  /// ptxas 13.0 treats a backslash as an ordinary character. Another version might treat it as an
  /// escape, so a backslash before a quote is refused.
  void string(Token& token) {
    token.kind = Token::Kind::string;
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') refuse("a string does not end in its line");
      if (peek() == '\\' && peek(1) == '"') refuse("a string has a backslash before a quote");
      if (peek() == '\\' && peek(1) == '\\') ++at_;
    }
    ++at_;
  }

  void number(Token& token) {
    const char second = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (second == 'f' || second == 'd'))
      return realBits(token, second == 'f' ? 8 : 16);
    std::size_t end = at_;
    while (end < text_.size() && isDigit(text_[end])) ++end;
    const char behind = end < text_.size() ? text_[end] : '\0';
    if (behind == '.' || behind == 'e' || behind == 'E') return decimalReal(token, end);
    integer(token);
  }

  /// Reads the bits of a floating-point number, such as 0f3F800000.
  void realBits(Token& token, std::size_t digits) {
    token.kind = Token::Kind::real;
    at_ += 2;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      if (digit(peek()) > 15) refuse("a floating-point constant is too short");
    }
    endNumber();
  }

  void decimalReal(Token& token, std::size_t end) {
    token.kind = Token::Kind::real;
    at_ = end;
    if (peek() == '.') {
      if (!isDigit(peek(1))) refuse("a '.' follows a number");
      for (++at_; isDigit(peek());) ++at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      at_ += peek(1) == '+' || peek(1) == '-' ? 2 : 1;
      if (!isDigit(peek())) refuse("an exponent has no digits");
      while (isDigit(peek())) ++at_;
    }
    endNumber();
  }

  void integer(Token& token) {
    token.kind = Token::Kind::integer;
    int base = 10;
    if (peek() == '0') {
      const char mark = static_cast<char>(peek(1) | 0x20);
      base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
      if (base != 8) at_ += 2;
    }
    const std::size_t first = at_;
    for (; digit(peek()) < base; ++at_) {
      const auto next = static_cast<std::uint64_t>(digit(peek()));
      if (token.value > (~std::uint64_t{0} - next) / static_cast<std::uint64_t>(base))
        refuse("a number needs more than 64 bits");
      token.value = token.value * static_cast<std::uint64_t>(base) + next;
    }
    if (at_ == first) refuse("a number has no digits");
    if (peek() == 'U') ++at_;
    endNumber();
  }

  void endNumber() const {
    if (isPart(peek()) || peek() == '.') refuse("a number runs into a word");
  }

  void mark(Token& token) {
    constexpr std::string_view kMarks = "{}()[]<>,;:@!|+-*/=~&^?%_";
    if (kMarks.find(peek()) == kMarks.npos) refuse("a character is not part of PTX");
    if (peek() == '@' && peek(1) == '@') refuse("a line begins with '@@'");
    token.kind = Token::Kind::mark;
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
  std::uint32_t line_ = 1;
};

/// Bytes of one element; 0 if the word is not a variable type.
std::uint64_t typeBytes(std::string_view word) {
  static constexpr std::pair<std::string_view, std::uint64_t> kTypes[] = {
      {".b8", 1},     {".u8", 1},       {".s8", 1},           {".e4m3", 1},      {".e5m2", 1},
      {".b16", 2},    {".u16", 2},      {".s16", 2},          {".f16", 2},       {".bf16", 2},
      {".b32", 4},    {".u32", 4},      {".s32", 4},          {".f32", 4},       {".f16x2", 4},
      {".bf16x2", 4}, {".b64", 8},      {".u64", 8},          {".s64", 8},       {".f64", 8},
      {".b128", 16},  {".texref", 512}, {".samplerref", 512}, {".surfref", 512}, {".tf32", 4},
      {".e4m3x2", 2}, {".e5m2x2", 2}};
  for (const auto& [name, bytes] : kTypes) {
    if (word == name) return bytes;
  }
  return 0;
}

/// Finds all declarations. Outside of braces, a directive is never part of an instruction; inside,
/// a directive glued to an opcode is.
class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text) { advance(); }

  std::uint64_t bytes() {
    while (token_.kind != Token::Kind::end) item();
    if (depth_ != 0 || parentheses_ != 0) lexer_.refuse("a bracket is not closed");
    return bytes_;
  }

 private:
  using Kind = Token::Kind;

  Token advance() {
    const Token last = token_;
    token_ = lexer_.next();
    return last;
  }
  bool accept(char mark) { return token_.is(mark) && (advance(), true); }
  bool accept(std::string_view word) { return token_.is(word) && (advance(), true); }
  std::uint64_t expectInteger(const char* reason) {
    if (token_.kind != Kind::integer) lexer_.refuse(reason);
    return advance().value;
  }

  void item() {
    const Token token = advance();
    const bool begins = std::exchange(begins_, false);
    if (token.kind == Kind::directive) return directive(token);
    if (token.kind == Kind::mark) return mark(token);
    if (token.kind == Kind::name && begins && depth_ > 0) {
      while (token_.kind == Kind::directive && token_.glued) advance();
    }
  }

  void mark(const Token& token) {
    depth_ += token.is('{') - token.is('}');
    parentheses_ += token.is('(') - token.is(')');
    if (depth_ < 0 || parentheses_ < 0) lexer_.refuse("a bracket is closed that was not opened");
    begins_ = token.is('{') || token.is('}') || token.is(';') || token.is(':');
    if (!token.is('@')) return;
    accept('!');
    if (token_.kind != Kind::name) lexer_.refuse("a '@' has no predicate behind it");
    advance();
    begins_ = true;
  }

  void directive(const Token& token) {
    const bool pointed = parentheses_ > 0 && token.is(".ptr");
    if (pointed) return parameterSpace();
    if (token.is(".loc")) return line();
    if (token.is(".file")) return file();
    if (token.is(".global") || token.is(".const") || token.is(".tex") || token.is(".surf") ||
        token.is(".sampler"))
      return declaration();
  }

  /// Skips the state space of a pointer parameter: `.param .u64 .ptr .global .align 8 name`.
  void parameterSpace() {
    if (token_.is(".global") || token_.is(".const")) advance();
  }

  /// Reads `.loc 1 2 3, function_name NAME + 4, inlined_at 1 2 3`, which has no semicolon.
  void line() {
    constexpr const char* kReason = "a .loc cannot be read";
    for (int i = 0; i < 3; ++i) expectInteger(kReason);
    while (accept(',')) {
      if (accept("function_name")) {
        if (advance().kind != Kind::name || (token_.kind == Kind::directive && token_.glued))
          lexer_.refuse(kReason);
        if (accept('+')) expectInteger(kReason);
      } else if (accept("inlined_at")) {
        for (int i = 0; i < 3; ++i) expectInteger(kReason);
      } else {
        lexer_.refuse(kReason);
      }
    }
    begins_ = true;
  }

  void file() {
    constexpr const char* kReason = "a .file cannot be read";
    expectInteger(kReason);
    if (advance().kind != Kind::string) lexer_.refuse(kReason);
    while (accept(',')) expectInteger(kReason);
    begins_ = true;
  }

  /// Reads a declaration after .global or .const, up to the semicolon. An .extern variable counts
  /// too: ptxas creates it if it has no definition.
  void declaration() {
    std::uint64_t alignment = 1, lanes = 1, element = 0;
    while (element == 0) {
      if (accept(".align")) {
        alignment = expectInteger("an .align has no number");
        if (!std::has_single_bit(alignment)) lexer_.refuse("an alignment is not a power of two");
      } else if (accept(".attribute")) {
        skipAttribute();
      } else if (token_.is(".v2") || token_.is(".v4") || token_.is(".v8")) {
        lanes = static_cast<std::uint64_t>(advance().text[2] - '0');
      } else {
        element = typeBytes(token_.kind == Kind::directive ? advance().text : "");
        if (element == 0) lexer_.refuse("a variable in device memory has no type that is known");
      }
    }
    do {
      if (advance().kind != Kind::name) lexer_.refuse("a variable in device memory has no name");
      variable(element * lanes, alignment);
    } while (accept(','));
    if (!accept(';'))
      lexer_.refuse("the declaration of a variable in device memory does not end where it should");
    begins_ = true;
  }

  void skipAttribute() {
    if (!accept('(')) lexer_.refuse("an .attribute has no list");
    while (!accept(')')) {
      if (token_.kind == Kind::end || token_.is('(')) lexer_.refuse("an .attribute does not end");
      advance();
    }
  }

  void variable(std::uint64_t element, std::uint64_t alignment) {
    std::uint64_t bytes = element;
    bool open = false;
    for (bool first = true; accept('['); first = false) {
      if (first && accept(']')) {
        open = true;
        continue;
      }
      if (token_.kind != Kind::integer) lexer_.refuse("the size of an array is not a plain number");
      bytes = multiply(bytes, std::max<std::uint64_t>(1, advance().value));
      if (!accept(']')) lexer_.refuse("the size of an array is not a plain number");
    }
    const std::uint64_t values = accept('=') ? initialiser() : 0;
    if (open)
      bytes = multiply(bytes,
                       values);  // without values it is defined elsewhere, or the driver refuses it
    alignment =
        std::max({alignment, std::bit_ceil(element), bytes > kSmall ? kPage : kGranularity});
    bytes_ = addMemory(bytes_, multiply(addMemory(bytes, alignment - 1) / alignment, alignment));
    if (alignment > kPage) bytes_ = addMemory(bytes_, alignment);
  }

  /// Counts the values in the outermost braces.
  std::uint64_t initialiser() {
    std::uint64_t values = 1;
    int braces = 0, parentheses = 0;
    for (;; advance()) {
      if (token_.kind == Kind::end || token_.kind == Kind::directive || token_.kind == Kind::string)
        lexer_.refuse("the initial value of a variable cannot be read");
      if (braces == 0 && parentheses == 0 && (token_.is(',') || token_.is(';'))) return values;
      braces += token_.is('{') - token_.is('}');
      parentheses += token_.is('(') - token_.is(')');
      if (braces < 0 || parentheses < 0)
        lexer_.refuse("the initial value of a variable cannot be read");
      if (braces == 1 && parentheses == 0 && token_.is(',')) ++values;
    }
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
  int parentheses_ = 0;
  bool begins_ = true;  ///< the next token begins a statement
  std::uint64_t bytes_ = 0;
};

}  // namespace

PtxMemory ptxMemory(std::string_view text) {
  try {
    return {Reader(text).bytes(), {}};
  } catch (const Refusal& refusal) {
    return {0, "PTX line " + std::to_string(refusal.line) + ": " + refusal.reason +
                   ", so the device memory that the code takes cannot be told beforehand"};
  }
}

}  // namespace worker
