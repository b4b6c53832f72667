#include "native/simulator/ptx/machine/reports.h"

#include <cstdio>
#include <mutex>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"

namespace simulator::ptx {
namespace {

/// Reports of one launch that are written out.
constexpr std::size_t kReports = 20;

}  // namespace

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Reports::~Reports() {
  if (unsaid_ == 0 || !run_.environment.output.assertion) return;
  run_.environment.output.assertion("nvidia-virtual: " + std::to_string(unsaid_) +
                                    " more reports of kernel " + run_.kernel.name +
                                    " are left out\n");
}

std::string Reports::place(const Operation* op) const { return run_.program.place(op); }

std::string Reports::thread(std::uint64_t block, std::uint32_t number) const {
  const auto& dims = run_.launch.block;
  const auto position = blockPosition(run_, block);
  const auto triple = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
  };
  return "thread " +
         triple(number % dims[0], number / dims[0] % dims[1], number / dims[0] / dims[1]) +
         " of block " + triple(position[0], position[1], position[2]);
}

std::string Reports::thread(const Warp& w, unsigned lane) const {
  return thread(w.block->index, w.index * kLanes + lane);
}

std::string Reports::address(const Warp& w, std::uint64_t host) const {
  for (const Block* block : w.block->cluster) {
    const auto begin = reinterpret_cast<std::uint64_t>(block->shared);
    if (host < begin || host >= begin + run_.sharedMapped()) continue;
    return "shared memory at " + hexadecimal(host - begin) + " of the block's " +
           std::to_string(run_.sharedMapped()) + " bytes";
  }
  std::string result = "global memory at " + hexadecimal(host);
  const std::string variable = run_.program.variableAt(host);
  if (!variable.empty()) return result + " (" + variable + ")";
  const auto [begin, end] = run_.environment.memory->around(host);
  if (begin == end) return result;
  return result + " (byte " + std::to_string(host - begin) + " of the " +
         std::to_string(end - begin) + " bytes at " + hexadecimal(begin) + ")";
}

void Reports::report(const Operation* first, const Operation* second, const std::string& title,
                     const std::vector<std::string>& details) {
  const std::string kind = title.substr(0, title.find(" at 0x"));
  if (!seen_.emplace(first, second, kind).second) return;
  if (seen_.size() > kReports) {
    ++unsaid_;
    return;
  }
  std::string text = "nvidia-virtual: " + title + ", in kernel " + run_.kernel.name + "\n";
  for (const std::string& detail : details) text += "    " + detail + "\n";
  const std::lock_guard lock(run_.textMutex);
  if (run_.environment.output.assertion) run_.environment.output.assertion(text);
}

}  // namespace simulator::ptx
