import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Call, travels } from './calls.js';
import { checkCalls } from './check_calls.js';
import { readCall } from './read_calls.js';
import { readType } from './read_types.js';
import { Located } from './source.js';
import { TypeTable } from './type_table.js';

/** The specification, read from the files in cuda-api/. */
export interface Specification {
  types: TypeTable;
  /** Sorted by file name, then in the order of the file. */
  calls: { noun: string; call: Call }[];
  /** Driver functions that the worker uses in addition to those of remote calls. */
  driverSymbols: string[];
}

/** Reads and checks a directory with types/, calls/ and driver.yaml; throws SpecificationError. */
export function readSpecification(directory: string): Specification {
  const types = new TypeTable(readFolder(directory, 'types').map(({ entry }) => readType(entry)));
  const calls = readFolder(directory, 'calls').map(({ noun, entry }) => ({
    noun,
    call: readCall(entry),
  }));
  checkCalls(
    calls.map(({ call }) => call),
    types,
  );
  return {
    types,
    calls,
    driverSymbols: readDriverSymbols(
      directory,
      calls.map(({ call }) => call),
    ),
  };
}

function readFolder(directory: string, folder: string): { noun: string; entry: Located }[] {
  const files = readdirSync(join(directory, folder)).filter((file) => file.endsWith('.yaml'));
  return files.sort().flatMap((file) => {
    const noun = file.slice(0, -'.yaml'.length);
    return Located.readList(join(directory, folder, file), `${folder}/${file}`).map((entry) => ({
      noun,
      entry,
    }));
  });
}

function readDriverSymbols(directory: string, calls: readonly Call[]): string[] {
  const path = join(directory, 'driver.yaml');
  const listed = existsSync(path) ? Located.readList(path, 'driver.yaml') : [];
  const symbols = new Set(
    calls.filter((call) => travels(call) && !call.internal).map((call) => call.name),
  );
  const exported = new Set(calls.filter((call) => !call.internal).map((call) => call.name));
  for (const entry of listed) {
    const name = entry.text();
    if (!exported.has(name)) entry.fail(`${name} is not described in cuda-api/calls/.`);
    if (symbols.has(name))
      entry.fail(
        `${name} is already in the table` +
          `${travels(find(calls, name)) ? ', because it is sent to the worker' : ''}.`,
      );
    symbols.add(name);
  }
  return [...symbols];
}

function find(calls: readonly Call[], name: string): Call {
  return calls.find((call) => call.name === name) as Call;
}
