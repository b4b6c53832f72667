// Generated. Do not edit, change cuda-api/.
// The numbers of the calls that cross from interposer to worker. Both are of one build, which kBuildId proves.
#pragma once

#include <cstddef>
#include <cstdint>

enum class CallNumber : std::uint16_t {
  cuToyOpen_v2 = 1,
  cuToyClose = 2,
  cuToyWait = 3,
  cuToyFill = 4,
  cuToyCopy = 5,
  cuToyPaint = 6,
  cuToyLoad = 7,
  cuToyPart = 8,
  cuToyGather = 9,
  toyStage = 10,
};

inline constexpr std::size_t kCallCount = 10;
inline constexpr std::uint64_t kBuildId = 0x25b5641d005c3c44;

inline constexpr const char* kCallNames[kCallCount + 1] = {
    "unknown call",
    "cuToyOpen_v2",
    "cuToyClose",
    "cuToyWait",
    "cuToyFill",
    "cuToyCopy",
    "cuToyPaint",
    "cuToyLoad",
    "cuToyPart",
    "cuToyGather",
    "toyStage",
};

/// For logs; any number is allowed.
inline const char* callName(std::uint16_t number) { return kCallNames[number <= kCallCount ? number : 0]; }
