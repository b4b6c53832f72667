#include "native/worker/gate/sampling.h"

namespace worker {

namespace {

/// Added to the interval for each query, in ns: a query costs 0.1 us.
constexpr std::uint64_t kRest = 20'000;

}  // namespace

bool Sampling::isDue(std::uint64_t now) {
  if (next_ == 0) {
    next_ = now + random_() % kInterval;
    until_ = next_ - kInterval;
  }
  return now >= next_;
}

void Sampling::taken(std::uint64_t now, std::size_t queries) {
  until_ = now;
  next_ = now + kInterval / 2 + random_() % kInterval + kRest * queries;
}

}  // namespace worker
