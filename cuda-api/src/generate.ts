import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { emitCoverage } from './emit/coverage.js';
import { outputs } from './outputs.js';
import { SpecificationError } from './source.js';
import { readSpecification } from './specification.js';

const USAGE = 'Usage: node cuda-api/dist/generate.js [--out DIRECTORY] [--coverage FILE] [--specification DIRECTORY]';

/** A file that is right already keeps its time, so that nothing is compiled again. */
function writeWhenChanged(path: string, text: string): void {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function main(): void {
  const { values } = parseArgs({ options: { out: { type: 'string' }, coverage: { type: 'string' }, specification: { type: 'string' } } });
  if (values.out === undefined && values.coverage === undefined) throw new TypeError(`Nothing to do. ${USAGE}`);
  const specification = readSpecification(values.specification ?? fileURLToPath(new URL('..', import.meta.url)));
  if (values.coverage !== undefined) writeWhenChanged(values.coverage, emitCoverage(specification));
  if (values.out === undefined) return;
  for (const [name, text] of outputs(specification)) writeWhenChanged(join(values.out, name), text);
}

try {
  main();
} catch (error) {
  if (!(error instanceof SpecificationError || error instanceof TypeError)) throw error;
  console.error(error instanceof SpecificationError ? `cuda-api/${error.message}` : error.message);
  process.exitCode = 1;
}
