// Generated. Do not edit, change cuda-api/.
// What cuda-api/calls/ says of the calls that travel.
#pragma once

#include "call_numbers.h"
#include "wire/handle_table.h"

/// Memory that a call takes: of the GPU, or pinned memory of the host.
enum class Allocates : std::uint8_t { nothing, device, host };

struct CallFacts {
  bool ordered;              ///< has a ticket
  bool submits;              ///< work that may use memory: a kernel, copy or memset
  bool makes;                ///< may give the program an object, memory or an address
  Allocates allocates;
  wire::HandleKind gives;    ///< an object of this kind
  wire::HandleKind destroys; ///< an object of this kind
};

inline constexpr CallFacts kCallFacts[kCallCount + 1] = {
    {false, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},
    {true, false, true, Allocates::device, wire::HandleKind::stream, wire::HandleKind::none},  // cuToyOpen_v2
    {true, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::stream},  // cuToyClose
    {true, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyWait
    {true, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyMark
    {true, true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyFill
    {true, true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyCopy
    {true, true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyPaint
    {true, true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyPlay
    {true, false, true, Allocates::host, wire::HandleKind::module, wire::HandleKind::none},  // cuToyLoad
    {true, false, true, Allocates::nothing, wire::HandleKind::genericAllocation, wire::HandleKind::none},  // cuToyPart
    {true, false, true, Allocates::nothing, wire::HandleKind::module, wire::HandleKind::none},  // cuToyGather
    {false, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyAsk
    {true, false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // toyStage
};
