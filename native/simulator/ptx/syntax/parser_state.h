// The parser's own shape, shared by its files: module scope, declarations, statements, constants.
#pragma once

#include <string>

#include "native/simulator/ptx/syntax/failure.h"
#include "native/simulator/ptx/syntax/lexer.h"
#include "native/simulator/ptx/syntax/scope.h"
#include "native/simulator/ptx/syntax/tree.h"

namespace simulator::ptx {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }
  Module module();

 private:
  static constexpr int kMostLevels = 32;
  /// Limit on the variables of one range.
  static constexpr std::size_t kMostRange = 4096;
  /// One level of a recursion. Text that nests deeper is refused, before the stack ends.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.levels_ > kMostLevels)
        parser_.fail("nested deeper than " + std::to_string(kMostLevels) + " levels");
    }
    ~Level() { --parser_.levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // parser.cpp: tokens and module scope
  Token advance();
  bool accept(char punctuation);
  bool accept(std::string_view word);
  void expect(char punctuation);
  Token expectWord(const char* what);
  std::int64_t expectInteger();
  void skipBraces();
  /// The rest of a .pragma.
  void skipPragma();
  /// Whether the word is inside of them.
  bool skipParentheses(std::string_view wanted = {});
  void moduleItem(Module& module);
  [[noreturn]] void fail(const std::string& what) const { throw Failure(token_.line, what); }

  // parser_declarations.cpp
  Linkage linkage();
  static bool isSpace(const Token& token, Space& space);
  void variables(Space space, Linkage linkage, std::vector<Variable>& into);
  Variable variable(Space space, Linkage linkage, Type type, std::uint64_t alignment,
                    std::uint64_t lanes);
  void dimensions(Variable& variable);
  void initialiser(Variable& variable);
  Initialiser initialValue(Type type);
  Initialiser symbolValue(Token name);
  void parameterList(std::vector<Variable>& into);
  void function(Module& module, Linkage linkage, bool entry);
  void functionDirectives(Function& function);
  std::array<std::uint32_t, 3> threeNumbers();

  // parser_statements.cpp
  void body(Function& function);
  void statement(Function& function);
  void registers(Function& function);
  /// The rest of name<count>.
  std::uint32_t rangeCount(std::size_t most);
  void bodyVariables(Function& function, Space space, Linkage linkage);
  void label(Function& function, std::string_view name);
  void closeLabels(Function& function);
  Prototype prototype();
  void instruction(Function& function);
  void vectorMove(Function& function, const Instruction& move);
  Operand operand(Function& function);
  Operand primary(Function& function);
  bool beginsConstant() const;
  Operand named(Function& function, Token name);
  void element(const Function& function, Operand& array);
  std::int64_t elementBytes(const Function& function, const Operand& array);
  Operand group(Function& function, Operand::Kind kind, char close);
  std::uint32_t predicate();

  // parser_expressions.cpp
  struct Constant {
    Operand::Kind kind;  ///< Integer, Float or Float32
    std::uint64_t bits;
    bool isUnsigned;  ///< of an Integer: how /, >> and comparisons treat it
  };
  Constant constant();
  /// @param lowest precedence of the operators that belong to it
  Constant binaries(int lowest);
  Constant constantOperand();
  /// A constant or the type of a cast, behind the opening one.
  Constant inParentheses();
  Constant binary(std::string_view op, const Constant& left, const Constant& right) const;
  Constant ofIntegers(std::string_view op, const Constant& left, const Constant& right) const;
  Constant ofFloats(std::string_view op, double left, double right) const;
  std::uint64_t integer(const Constant& value) const;
  std::int64_t displacement();

  Lexer lexer_;
  Token token_;
  Scopes scopes_;
  const Module* module_ = nullptr;
  int levels_ = 0;
  bool inCall_ = false;  ///< of the instruction: parentheses are a list, not a constant
  struct LabelScope {
    std::size_t firstInstruction;
    std::unordered_map<std::string_view, std::uint32_t> labels;
  };
  std::vector<LabelScope> labelScopes_;  ///< inside of the function's own
};

}  // namespace simulator::ptx
