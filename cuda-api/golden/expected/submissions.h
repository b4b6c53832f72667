// Generated. Do not edit, change cuda-api/.
// Entry points that give the GPU work.
#pragma once

#include <string_view>

inline constexpr std::string_view kSubmissions[] = {
    "cuToyMark",
    "cuToyFill",
    "cuToyFill_ptsz",
    "cuToyCopy",
    "cuToyCopy_ptds",
    "cuToyPaint",
    "cuToyPlay",
};
