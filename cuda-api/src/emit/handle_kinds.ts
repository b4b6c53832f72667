import type { Specification } from '../specification.js';
import { BANNER } from './text.js';

/** handle_kinds.h: the handle kind of each type. */
export function emitHandleKinds({ types }: Specification): string {
  const kinds = types.ordered.flatMap(({ name }) => {
    const kind = types.handleKind(name);
    return kind
      ? [
          `template <>\nstruct ` +
            `HandleOf<${name}> {\n  static constexpr auto kind = wire::HandleKind::${kind};\n};`,
        ]
      : [];
  });
  return `${BANNER}// Which kind of handle stands for a value of each type of the API that \
travels as a handle.
#pragma once

#include "cuda_abi.h"
#include "wire/handle_table.h"

namespace worker {

template <class T>
struct HandleOf;
${kinds.join('\n')}

}  // namespace worker
`;
}
