#include "native/simulator/ptx/syntax/scope.h"

namespace simulator::ptx {

Name Scopes::findIn(const Level& level, std::string_view name) {
  if (const auto found = level.names.find(name); found != level.names.end()) return found->second;
  std::uint64_t number = 0, scale = 1;
  // A prefix may itself end in digits ("temp1<4>"), so every split into prefix and number is tried,
  // the shortest number first.
  for (std::size_t cut = name.size();
       cut > 1 && name[cut - 1] >= '0' && name[cut - 1] <= '9' && name.size() - cut < 9;) {
    --cut;
    number += scale * static_cast<std::uint64_t>(name[cut] - '0');
    scale *= 10;
    if (level.ranges.empty()) continue;
    const auto range = level.ranges.find(name.substr(0, cut));
    if (range != level.ranges.end() && number < range->second.count) {
      const Name first = range->second.first;
      return {first.kind, first.index + static_cast<std::uint32_t>(number)};
    }
  }
  return {};
}

Name Scopes::find(std::string_view name) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const Name found = findIn(*level, name);
    if (found.kind != Name::Kind::None) return found;
  }
  return {};
}

Name Scopes::findLane(std::string_view name) const {
  const Name whole = find(name);
  if (whole.kind != Name::Kind::None || name.size() < 3 || name[name.size() - 2] != '.')
    return whole;
  const Name vector = find(name.substr(0, name.size() - 2));
  for (const std::string_view lanes : {"xyzw", "rgba"}) {
    const std::size_t lane = lanes.find(name.back());
    if (lane < vector.lanes && vector.lanes > 1)
      return {vector.kind, vector.index + static_cast<std::uint32_t>(lane)};
  }
  return {};
}

}  // namespace simulator::ptx
