// Names that a function body declares, scope by scope: registers and variables, also in ranges
// (%r<9>).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace simulator::ptx {

struct Name {
  enum class Kind : std::uint8_t { None, Register, Variable };
  Kind kind = Kind::None;
  std::uint32_t index = 0;
  std::uint32_t lanes = 1;  ///< of a vector of registers, which follow one another
};

class Scopes {
 public:
  void open() { levels_.emplace_back(); }
  void close() { levels_.pop_back(); }
  std::size_t depth() const { return levels_.size(); }
  void add(std::string_view name, Name meaning) { levels_.back().names[name] = meaning; }
  void addRange(std::string_view prefix, Name first, std::uint32_t count) {
    levels_.back().ranges[prefix] = {first, count};
  }
  Name find(std::string_view name) const;
  /// As find(), and a register of a vector by its lane (%v.x).
  Name findLane(std::string_view name) const;

 private:
  struct Range {
    Name first;
    std::uint32_t count;
  };
  struct Level {
    std::unordered_map<std::string_view, Name> names;
    std::unordered_map<std::string_view, Range> ranges;
  };
  static Name findIn(const Level& level, std::string_view name);
  std::vector<Level> levels_;
};

}  // namespace simulator::ptx
