// Work as it ran on the GPU, which the worker of a traced program measures.
#pragma once

#include <cstdint>

namespace wire {

struct TimelineItem {
  std::uint16_t call;  ///< CallNumber of the frame that submitted it
  std::uint16_t device;
  std::uint32_t reserved;
  std::uint64_t stream;      ///< handle, or 0, 1 or 2
  std::uint64_t code;        ///< handle of a kernel or function, or another number
  std::uint64_t bytes;       ///< of a copy; 0: unknown
  std::uint64_t begin, end;  ///< nanoseconds of CLOCK_MONOTONIC
};

/// Head of the answer to readTimeline; an array of TimelineItem follows.
struct Timeline {
  std::uint64_t lost;  ///< pieces of work, since the session began, whose time is unknown
  std::uint64_t left;  ///< pieces of work that have ended and did not fit the answer
};

inline constexpr std::size_t kMostTimelineItems = 1024;

}  // namespace wire
