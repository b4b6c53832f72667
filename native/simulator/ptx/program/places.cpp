// Source positions of operations, as reports name them.
#include <charconv>

#include "native/simulator/ptx/program/program.h"

namespace simulator::ptx {
namespace {

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

/// The number at the beginning of the text, which is taken away.
std::uint32_t takeNumber(std::string_view& text) {
  text = trimmed(text);
  std::uint32_t result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return result;
}

/// The rest of the line behind `directive`; empty for another line.
std::string_view operandsOf(std::string_view line, std::string_view directive) {
  line = trimmed(line);
  if (!line.starts_with(directive) || line.size() <= directive.size() ||
      (line[directive.size()] != ' ' && line[directive.size()] != '\t'))
    return {};
  return line.substr(directive.size());
}

std::string_view fileNamed(std::string_view text, std::uint32_t number) {
  while (!text.empty()) {
    std::string_view operands = operandsOf(text.substr(0, text.find('\n')), ".file");
    if (!operands.empty() && takeNumber(operands) == number) {
      const std::size_t begin = operands.find('"') + 1, end = operands.find('"', begin);
      if (begin != 0 && end != std::string_view::npos) return operands.substr(begin, end - begin);
    }
    text.remove_prefix(text.find('\n') == std::string_view::npos ? text.size()
                                                                 : text.find('\n') + 1);
  }
  return {};
}

/// Position of the last .loc before a line of the text, within the same function; empty if there
/// is none.
std::string sourceOf(std::string_view text, std::uint32_t line) {
  std::string_view operands;
  for (std::string_view rest = text; line > 0 && !rest.empty(); --line) {
    const std::string_view now = rest.substr(0, rest.find('\n'));
    const std::string_view found = operandsOf(now, ".loc");
    if (!found.empty()) operands = found;
    if (now.starts_with("{")) operands = {};
    rest.remove_prefix(now.size() == rest.size() ? rest.size() : now.size() + 1);
  }
  if (operands.empty()) return {};
  const std::uint32_t file = takeNumber(operands), number = takeNumber(operands);
  const std::string_view name = fileNamed(text, file);
  return name.empty() ? std::string() : std::string(name) + ":" + std::to_string(number);
}

}  // namespace

std::string LinkedProgram::place(const Operation* op) const {
  for (std::size_t f = 0; f < codes_.size(); ++f) {
    const auto& operations = codes_[f]->operations;
    if (operations.empty() || op < operations.data() || op >= operations.data() + operations.size())
      continue;
    const std::string source = sourceOf(texts_[definedIn_[f]], op->line);
    return source.empty() ? "PTX line " + std::to_string(op->line) + " of " + codes_[f]->name
                          : source;
  }
  return "a place without a line";
}

std::string LinkedProgram::variableAt(std::uint64_t address) const {
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    if (address < addresses_[i] || address >= addresses_[i] + variables_[i].size) continue;
    return "byte " + std::to_string(address - addresses_[i]) + " of variable " + variables_[i].name;
  }
  return {};
}

}  // namespace simulator::ptx
