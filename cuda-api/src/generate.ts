import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { emitCoverage } from './emit/coverage.js';
import { outputs } from './outputs.js';
import { SpecificationError } from './source.js';
import { readSpecification, type Specification } from './specification.js';

const OURS = fileURLToPath(new URL('..', import.meta.url));
const USAGE =
  'Usage: node cuda-api/dist/generate.js [--out DIRECTORY] [--coverage FILE] ' +
  '[--specification DIRECTORY]';

/** Prints an error and exits. */
class Refusal extends Error {}

/** An unchanged file is not written, so that its users are not compiled again. */
function writeWhenChanged(path: string, text: string): void {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function main(): void {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      coverage: { type: 'string' },
      specification: { type: 'string', default: OURS },
    },
  });
  if (values.out === undefined && values.coverage === undefined)
    throw new Refusal(`Nothing to do. ${USAGE}`);
  const specification = readOrExplain(values.specification);
  if (values.coverage !== undefined) writeWhenChanged(values.coverage, emitCoverage(specification));
  if (values.out === undefined) return;
  for (const [name, text] of outputs(specification)) writeWhenChanged(join(values.out, name), text);
}

/** Makes the path relative to the working directory, so that editors find the file. */
function readOrExplain(directory: string): Specification {
  try {
    return readSpecification(directory);
  } catch (error) {
    if (!(error instanceof SpecificationError)) throw error;
    throw new Refusal(
      `${relative('', join(directory, error.file))}:${error.line}: ${error.sentence}`,
    );
  }
}

try {
  main();
} catch (error) {
  const isUsage =
    error instanceof TypeError &&
    'code' in error &&
    String(error.code).startsWith('ERR_PARSE_ARGS');
  if (!(error instanceof Refusal || isUsage)) throw error;
  console.error(isUsage ? `${error.message} ${USAGE}` : error.message);
  process.exitCode = 1;
}
