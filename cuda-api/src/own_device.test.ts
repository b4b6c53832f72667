import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseName } from './c_declaration.js';
import { type Parameter, travels } from './calls.js';
import { readSpecification } from './specification.js';
import type { TypeTable } from './type_table.js';
import { isNested, type Member } from './types.js';

const repository = `${dirname(dirname(dirname(fileURLToPath(import.meta.url))))}/`;

/** Whether a value of the type says which GPU is meant. */
function namesDevice(types: TypeTable, type: string): boolean {
  const base = baseName(type);
  if (base === 'CUdevice' || base === 'CUmemLocation') return true;
  const declared = types.find(base);
  if (declared?.kind === 'typedef') return namesDevice(types, declared.type);
  const isAggregate = declared?.kind === 'struct' || declared?.kind === 'union';
  return isAggregate && declared.members.some((member) => memberNames(types, member));
}

function memberNames(types: TypeTable, member: Member): boolean {
  return isNested(member)
    ? member.members.some((inner) => memberNames(types, inner))
    : namesDevice(types, member.type);
}

function isRead({ direction, type }: Parameter): boolean {
  return direction !== 'out' && !/^CUdevice\s*\*/.test(type);
}

test('a worker that sees more GPUs guards each argument of a call that names one', () => {
  const { calls, driverSymbols, types } = readSpecification(`${repository}cuda-api`);
  const expected = calls
    .filter(({ call }) => travels(call) && driverSymbols.includes(call.name))
    .map(({ call }) => ({
      name: call.name,
      places: call.parameters.flatMap((parameter, place) =>
        isRead(parameter) && namesDevice(types, parameter.type) ? [place] : [],
      ),
    }))
    .filter(({ places }) => places.length > 0);
  expect(expected.length).toBeGreaterThan(30);
  const source = readFileSync(`${repository}native/worker/driver/own_device.cpp`, 'utf8');
  const missing = expected.filter(({ name, places }) => {
    const guarded = new RegExp(`guard<&Driver::${name}, ([\\d, ]+)>`).exec(source)?.[1];
    const isReplaced = source.includes(`driver.${name} = [](`);
    return !isReplaced && guarded !== places.join(', ');
  });
  expect(missing).toEqual([]);
});
