// Generated. Do not edit, change cuda-api/.
// The numbers of the calls that cross from interposer to worker. Both are of one build, which kBuildId proves.
#pragma once

#include <cstddef>
#include <cstdint>

enum class CallNumber : std::uint16_t {
  cuToyOpen_v2 = 1,
  cuToyClose = 2,
  cuToyWait = 3,
  cuToyMark = 4,
  cuToyFill = 5,
  cuToyCopy = 6,
  cuToyPaint = 7,
  cuToyPlay = 8,
  cuToyLoad = 9,
  cuToyPart = 10,
  cuToyGather = 11,
  cuToyAsk = 12,
  toyStage = 13,
};

inline constexpr std::size_t kCallCount = 13;
inline constexpr std::uint64_t kBuildId = 0xda40f47c7d7df536;

inline constexpr const char* kCallNames[kCallCount + 1] = {
    "unknown call",
    "cuToyOpen_v2",
    "cuToyClose",
    "cuToyWait",
    "cuToyMark",
    "cuToyFill",
    "cuToyCopy",
    "cuToyPaint",
    "cuToyPlay",
    "cuToyLoad",
    "cuToyPart",
    "cuToyGather",
    "cuToyAsk",
    "toyStage",
};

/// For logs; any number is allowed.
inline const char* callName(std::uint16_t number) { return kCallNames[number <= kCallCount ? number : 0]; }
