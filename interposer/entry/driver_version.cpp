#include "interposer/entry/driver_version.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "interposer/session/session.h"
#include "nvml/page.h"

namespace interposer {

namespace {

constexpr int kOurs = 13000;

thread_local int told = 0;

/// gpu-proxy may not have written the version yet, so only a found version is kept.
int versionWithoutSession() {
  static std::atomic<int> found{0};
  if (const int version = found.load(std::memory_order_relaxed); version != 0) return version;
  const std::optional<nvml::Page> page = nvml::readPage();
  const std::optional<int> version = page ? nvml::cudaVersionOf(*page) : std::nullopt;
  if (version) found.store(std::min(*version, kOurs), std::memory_order_relaxed);
  return std::min(version.value_or(kOurs), kOurs);
}

}  // namespace

int driverVersion() {
  const Session* session = Session::current();
  return told = session != nullptr ? session->driverVersion() : versionWithoutSession();
}

int toldDriverVersion() { return told != 0 ? told : driverVersion(); }

}  // namespace interposer
