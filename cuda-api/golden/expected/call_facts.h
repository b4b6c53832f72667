// Generated. Do not edit, change cuda-api/.
// Facts from cuda-api/calls/ about the calls that are sent to the worker.
#pragma once

#include "call_numbers.h"
#include "wire/handle_table.h"

/// Kind of memory that a call allocates. `host` is pinned memory.
enum class Allocates : std::uint8_t { nothing, device, host };

struct CallFacts {
  bool ordered;              ///< has a ticket
  bool makes;                ///< may give the program an object, memory or an address
  Allocates allocates;
  wire::HandleKind gives;    ///< kind of the object that it creates
  wire::HandleKind destroys; ///< kind of the object that it destroys
};

inline constexpr CallFacts kCallFacts[kCallCount + 1] = {
    {false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},
    {true, true, Allocates::device, wire::HandleKind::stream, wire::HandleKind::none},  // cuToyOpen_v2
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::stream},  // cuToyClose
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyWait
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyMark
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyFill
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyCopy
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyPaint
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyPlay
    {true, true, Allocates::host, wire::HandleKind::module, wire::HandleKind::none},  // cuToyLoad
    {true, true, Allocates::nothing, wire::HandleKind::genericAllocation, wire::HandleKind::none},  // cuToyPart
    {true, true, Allocates::nothing, wire::HandleKind::module, wire::HandleKind::none},  // cuToyGather
    {false, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // cuToyAsk
    {true, false, Allocates::nothing, wire::HandleKind::none, wire::HandleKind::none},  // toyStage
};
