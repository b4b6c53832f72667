#include "interposer/entry/missing_calls.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "interposer/session/log.h"
#include "interposer/session/session.h"

namespace interposer {

namespace {

/// Limits of the worker, from native/worker/reports/reported_names.h.
constexpr std::size_t kMost = 512;
constexpr std::size_t kLongestName = 128;

thread_local bool inRuntimeTable = false;

/// Never destroyed, because threads may use it while the process exits.
struct Missing {
  std::mutex mutex;
  std::set<std::string> known;
  std::string byRuntime;  ///< not told yet, separated by commas
  std::string byProgram;
};

Missing& missing() {
  static auto* const only = new Missing;
  return *only;
}

bool isName(std::string_view name) {
  const auto isOfName = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, isOfName);
}

void tell(std::string& names, bool byRuntime) {
  if (names.empty()) return;
  Session::current()->send(wire::MessageKind::notFound, byRuntime ? 1 : 0,
                           std::as_bytes(std::span(names)));
  names.clear();
}

}  // namespace

void beginRuntimeTable() { inRuntimeTable = true; }

void noteMissing(std::string_view name) {
  if (!isName(name)) return;
  Missing& all = missing();
  const std::lock_guard lock(all.mutex);
  if (all.known.size() >= kMost || !all.known.emplace(name).second) return;
  std::string& names = inRuntimeTable ? all.byRuntime : all.byProgram;
  names.append(names.empty() ? "" : ",").append(name);
  if (inRuntimeTable) return;
  log("%s is not supported yet; cuGetProcAddress does not find it", std::string(name).c_str());
  if (Session::current() != nullptr) tell(all.byProgram, false);
}

void tellMissing() {
  Missing& all = missing();
  const std::lock_guard lock(all.mutex);
  inRuntimeTable = false;
  if (Session::current() == nullptr) return;
  tell(all.byRuntime, true);
  tell(all.byProgram, false);
}

}  // namespace interposer
