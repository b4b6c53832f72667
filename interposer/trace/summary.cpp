#include "interposer/trace/summary.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace interposer::trace {

std::string formatDuration(double nanoseconds) {
  const char* unit = "ns";
  double value = nanoseconds;
  for (const char* larger : {"us", "ms", "s"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = larger;
  }
  char text[32];
  const int digits = value >= 1000 ? 0 : value >= 100 ? 2 : value >= 10 ? 3 : 4;
  std::snprintf(text, sizeof text, "%.*f%s", nanoseconds < 1000 ? 0 : digits, value, unit);
  return text;
}

void Summary::add(Rows& rows, std::string_view name, std::uint64_t nanoseconds) {
  auto found = rows.find(name);
  if (found == rows.end()) found = rows.emplace(name, Row{}).first;
  Row& row = found->second;
  ++row.count;
  row.total += nanoseconds;
  row.least = std::min(row.least, nanoseconds);
  row.most = std::max(row.most, nanoseconds);
}

std::string Summary::table(std::string_view title, std::uint64_t lost) const {
  char head[160];
  std::snprintf(head, sizeof head, "%16s %8s %10s %9s %10s %10s %10s  %s\n", "Type", "Time(%)",
                "Time", "Calls", "Avg", "Min", "Max", "Name");
  std::string text = std::string(title) + "\n" + head;
  text += section("GPU activities:", works_) + section("API calls:", calls_);
  if (lost > 0)
    text += "The time of " + std::to_string(lost) + " pieces of work on the GPU is unknown.\n";
  return text;
}

std::string Summary::section(const char* title, const Rows& rows) {
  std::vector<const Rows::value_type*> sorted;
  double all = 0;
  for (const auto& row : rows) {
    sorted.push_back(&row);
    all += static_cast<double>(row.second.total);
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto* row) { return row->second.total; });
  std::string text;
  for (const auto* entry : sorted) {
    const Row& row = entry->second;
    const auto total = static_cast<double>(row.total);
    char line[128];
    std::snprintf(line, sizeof line, "%16s %7.2f%% %10s %9llu %10s %10s %10s  ",
                  text.empty() ? title : "", all > 0 ? 100 * total / all : 0,
                  formatDuration(total).c_str(), static_cast<unsigned long long>(row.count),
                  formatDuration(total / static_cast<double>(row.count)).c_str(),
                  formatDuration(static_cast<double>(row.least)).c_str(),
                  formatDuration(static_cast<double>(row.most)).c_str());
    text += line + entry->first + "\n";
  }
  return text;
}

}  // namespace interposer::trace
