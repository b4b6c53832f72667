#pragma once

#include <vector>

#include "wire/timeline.h"

namespace interposer::trace {

/// Fetches work whose time the worker knows. `wait`: work that has not ended is waited for, some
/// seconds at most. Without a worker there is none.
wire::Timeline fetchTimeline(bool wait, std::vector<wire::TimelineItem>& items);

}  // namespace interposer::trace
