import type { Specification } from '../specification.js';
import { type Enumeration, isNested, type Member, type TypeDeclaration } from '../types.js';
import { BANNER, declare, indent, parameterList, symbols } from './text.js';

/** cuda_abi.h: the driver's types and the prototypes of all versions. */
export function emitCudaAbi(specification: Specification): string {
  const types = specification.types.ordered.map(emitType).join('\n');
  const prototypes = symbols(specification).map(
    ({ symbol, call }) => `CUresult ${symbol}(${parameterList(call.parameters)});`,
  );
  return `${BANNER}// The CUDA driver's binary interface: types, values and prototypes. No macro \
renames a function.
#pragma once

#include <stddef.h>
#include <stdint.h>

${types}

extern "C" {
${prototypes.join('\n')}
}
`;
}

function emitValues(values: Enumeration['values']): string {
  return values.map(({ name, value }) => `  ${name} = ${value},`).join('\n');
}

function emitType(declaration: TypeDeclaration): string {
  switch (declaration.kind) {
    case 'enum': {
      // Same underlying type as compilers choose. An explicit type makes all its values
      // valid.
      const underlying = declaration.values.some(({ value }) => value < 0) ? 'int' : 'unsigned int';
      return `enum ${declaration.name} : ${underlying} {\n${emitValues(declaration.values)}\n};`;
    }
    case 'handle':
      return `typedef struct ${declaration.tag}* ${declaration.name};`;
    case 'typedef':
      return `typedef ${declaration.type} ${declaration.name};`;
    case 'struct':
    case 'union': {
      const align = declaration.align ? `alignas(${declaration.align}) ` : '';
      return (
        `${declaration.kind} ${align}` +
        `${declaration.name} {\n${emitMembers(declaration.members)}\n};`
      );
    }
    case 'function':
      return (
        `typedef ${declaration.returns} (*` +
        `${declaration.name})(${declaration.parameters.join(', ')});`
      );
    case 'macro':
      return `#define ${declaration.name} ${declaration.value}`;
  }
}

function emitMembers(members: readonly Member[]): string {
  return members.map((member) => indent(emitMember(member))).join('\n');
}

function emitMember(member: Member): string {
  if (!isNested(member))
    return (
      `${declare(member.type, member.name)}` +
      `${member.dimensions.map((size) => `[${size}]`).join('')};`
    );
  return (
    `${member.nested} {\n${emitMembers(member.members)}\n}` +
    `${member.name === '' ? '' : ` ${member.name}`};`
  );
}
