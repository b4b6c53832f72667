import type { Call } from '../calls.js';
import type { Specification } from '../specification.js';
import type { TypeTable } from '../type_table.js';
import type { Macro, TypeDeclaration } from '../types.js';
import { BANNER, symbols, typeList } from './text.js';

/** abi_check.cpp compiles only if our declarations match the toolkit's headers. */
export function emitAbiCheck(specification: Specification): string {
  const { types } = specification;
  const macros = new Map(
    types.declarations.flatMap((each) =>
      each.kind === 'macro' ? [[each.name, each.value] as const] : [],
    ),
  );
  const checks = new Map<string, string[]>();
  const add = (header: string | undefined, lines: string[]): void => {
    checks.set(header ?? '', [...(checks.get(header ?? '') ?? []), ...lines]);
  };
  for (const declaration of types.declarations)
    add(declaration.header, checkType(declaration, types, macros));
  for (const { symbol, call } of symbols(specification))
    add(call.header, [checkPrototype(symbol, call)]);
  for (const { call } of specification.calls) add(call.header, checkEntryPoints(call));
  const [main, ...others] = [...checks].sort(([one], [two]) => (one < two ? -1 : 1));
  return `${BANNER}${PREAMBLE}
${main?.[1].join('\n') ?? ''}
${others.map(([header, lines]) => ifThere(header, lines)).join('')}`;
}

/** @param headers one or several with spaces between them, in the order of their inclusion */
function ifThere(headers: string, lines: readonly string[]): string {
  const names = headers.split(' ');
  return `
#if ${names.map((name) => `__has_include(<${name}>)`).join(' && ')}
${names.map((name) => `#include <${name}>`).join('\n')}
${lines.join('\n')}
#endif
`;
}

const PREAMBLE = `// All versions of every function are declared, and nothing is renamed, when \
these are defined.
#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>
#include <string_view>
#include <type_traits>

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

constexpr bool sameButSpaces(std::string_view one, std::string_view two) {
  while (!one.empty() || !two.empty()) {
    if (!one.empty() && one.front() == ' ') {
      one.remove_prefix(1);
    } else if (!two.empty() && two.front() == ' ') {
      two.remove_prefix(1);
    } else {
      if (one.empty() || two.empty() || one.front() != two.front()) return false;
      one.remove_prefix(1);
      two.remove_prefix(1);
    }
  }
  return true;
}
`;

function checkType(
  declaration: TypeDeclaration,
  types: TypeTable,
  macros: ReadonlyMap<string, string>,
): string[] {
  const { name } = declaration;
  switch (declaration.kind) {
    case 'enum':
      return [
        `static_assert(sizeof(${name}) == 4);`,
        ...declaration.values.map((each) => `static_assert(${each.name} == ${each.value});`),
      ];
    case 'handle':
      return [same(name, `struct ${declaration.tag}*`)];
    case 'typedef':
      return [same(name, declaration.type)];
    case 'function':
      return [same(name, `${declaration.returns} (*)(${declaration.parameters.join(', ')})`)];
    case 'macro':
      return [
        `static_assert(sameButSpaces(TEXT(` +
          `${name}), ${JSON.stringify(expand(declaration, macros))}));`,
      ];
    case 'struct':
    case 'union': {
      const { layout, fields } = types.place(declaration);
      return [
        `static_assert(sizeof(${name}) == ${layout.size} && alignof(${name}) == ${layout.align});`,
        ...fields.map(
          ({ path, offset, size }) =>
            `static_assert(offsetof(${name}, ` +
            `${path}) == ${offset} && sizeof(static_cast<${name}*>(nullptr)->${path}) == ${size});`,
        ),
      ];
    }
  }
}

/** Expands macros in the value like the preprocessor. */
function expand(macro: Macro, macros: ReadonlyMap<string, string>): string {
  let value = macro.value;
  for (let replaced = ''; replaced !== value; ) {
    replaced = value;
    value = value.replace(/\b[A-Z]\w+\b/g, (name) => macros.get(name) ?? name);
  }
  return value;
}

function checkPrototype(symbol: string, call: Call): string {
  return (
    `static_assert(std::is_same_v<decltype(&${symbol}), CUresult ` +
    `(*)(${typeList(call.parameters)})>, "${symbol}");`
  );
}

/** cudaTypedefs.h names the version of each prototype: PFN_cuMemAlloc_v3020. */
function checkEntryPoints(call: Call): string[] {
  const variants = [
    ...call.names.map(({ name, version }) => `PFN_${name}_v${version}`),
    ...call.names.flatMap(({ name }) =>
      call.perThread ? [`PFN_${name}_v${call.perThread.version}_${call.perThread.suffix}`] : [],
    ),
  ];
  return call.header ? [] : variants.map((variant) => same(variant, `decltype(&${call.name})`));
}

function same(one: string, two: string): string {
  return `static_assert(std::is_same_v<${one}, ${two}>);`;
}
