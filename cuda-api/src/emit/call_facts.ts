import { isPointer, pointee } from '../c_declaration.js';
import { type Call, givesWork, travels } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import { BANNER } from './text.js';

/**
 * call_facts.h: facts about calls that the worker and its tests look up by number.
 */
export function emitCallFacts({ calls, types }: Specification): string {
  const rows = calls.filter(({ call }) => travels(call)).map(({ call }) => row(call, types));
  return `${BANNER}// What cuda-api/calls/ says of the calls that travel.
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
${rows.join('\n')}
};
`;
}

function row(call: Call, types: TypeTable): string {
  const given = call.parameters
    .filter(
      ({ type, direction }) => direction !== 'in' && isPointer(type) && !type.startsWith('const '),
    )
    .map(({ type }) => types.handleKind(pointee(type)))
    .find((kind) => kind !== undefined);
  const destroyed = call.parameters.find(({ destroys }) => destroys);
  const kinds = [given, destroyed && types.handleKind(destroyed.type)].map(
    (kind) => `wire::HandleKind::${kind ?? 'none'}`,
  );
  const submits = givesWork(call) && call.submits !== 'marker';
  return (
    `    {${call.ordered}, ${submits}, ${call.allocates !== undefined}, Allocates::` +
    `${call.allocates ?? 'nothing'}, ${kinds.join(', ')}},  // ${call.name}`
  );
}
