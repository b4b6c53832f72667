// Reports of the checks of one launch, as text.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "native/simulator/ptx/machine/operation.h"

namespace simulator::ptx {

struct Run;

std::string hexadecimal(std::uint64_t value);

class Reports {
 public:
  explicit Reports(Run& run) : run_(run) {}
  ~Reports();
  Reports(const Reports&) = delete;

  /// One report; those of the same places are made once, and beyond a number only counted.
  /// `details` are lines.
  void report(const Operation* first, const Operation* second, const std::string& title,
              const std::vector<std::string>& details);
  std::string place(const Operation* op) const;
  std::string thread(std::uint64_t block, std::uint32_t thread) const;
  std::string thread(const Warp& w, unsigned lane) const;
  /// A device address, and the variable or allocation that it lies in.
  std::string address(const Warp& w, std::uint64_t address) const;

 private:
  Run& run_;
  std::set<std::tuple<const Operation*, const Operation*, std::string>> seen_;
  std::uint64_t unsaid_ = 0;
};

}  // namespace simulator::ptx
