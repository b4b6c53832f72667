#include "native/worker/session/host_functions.h"

namespace worker {

namespace {

/// An address of a program has at most 47 bits; the number of the entry is above it.
constexpr int kAddressBits = 48;
constexpr std::uint64_t kAddress = (std::uint64_t{1} << kAddressBits) - 1;
constexpr std::size_t kMost = 65'535;

}  // namespace

HostFunctions& HostFunctions::instance() {
  static HostFunctions* const all = new HostFunctions;  // the driver's threads may outlive main()
  return *all;
}

/// Number 0 is left out, so that no argument is null.
void* HostFunctions::argumentFor(Session& session, std::uint64_t function, std::uint64_t userData) {
  const std::uint64_t low = userData & kAddress, high = userData - low;
  const std::lock_guard lock(mutex_);
  const auto [found, isNew] =
      numbers_.try_emplace(Key{&session, function, high}, entries_.size() + 1);
  if (isNew && entries_.size() == kMost) return numbers_.erase(found), nullptr;
  if (isNew) entries_.push_back({&session, function, high});
  return reinterpret_cast<void*>(found->second << kAddressBits | low);
}

HostFunction HostFunctions::find(const void* argument) const {
  const auto word = reinterpret_cast<std::uint64_t>(argument);
  const std::lock_guard lock(mutex_);
  HostFunction function = entries_[(word >> kAddressBits) - 1];
  function.userData |= word & kAddress;
  return function;
}

}  // namespace worker
