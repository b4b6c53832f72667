import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { cudaHome } from '../conformance/builds.js';
import { GPU_PROXY, RELEASE, REPOSITORY } from '../paths.js';
import {
  type Comparison,
  compare,
  type Figure,
  type LocalResults,
  parsePrinted,
} from './figures.js';

const HELP = `Runs the benchmarks that need no GPU.
  --json FILE   output file (default: build/bench/local.json; docs/performance.md is generated \
from test/bench/results/local.json)`;

const COMPARISONS: readonly Comparison[] = [
  { name: 'ring.bare.enqueue_128' },
  {
    name: 'ring.wire.enqueue_128',
    reference: 'ring.bare.enqueue_128',
    measured: 'ring.ratio.enqueue_128',
    most: 2,
  },
  { name: 'enqueue', reference: 'ring.bare.enqueue_128' },
  { name: 'ring.bare.null_round_trip' },
  {
    name: 'ring.wire.null_round_trip',
    reference: 'ring.bare.null_round_trip',
    measured: 'ring.ratio.null_round_trip',
    most: 3,
  },
  { name: 'round trip', reference: 'ring.bare.null_round_trip' },
  { name: 'thread instructions a second and core', least: 500 },
];

const BUILD = path.join(REPOSITORY, 'build', 'bench');
const { values } = parseArgs({
  options: {
    json: { type: 'string', default: path.join(BUILD, 'local.json') },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  mkdirSync(BUILD, { recursive: true });
  const home = await cudaHome();
  const outputs = [run(path.join(RELEASE, 'test', 'bench', 'ring_bench'), [])];
  for (const name of ['calls', 'simulator']) {
    const program = compiled(home, name);
    outputs.push(
      run(process.execPath, [GPU_PROXY, 'run', '--backend', 'simulated', '--', program]),
    );
  }
  const figures = compare(parsePrinted(outputs.join('\n')), COMPARISONS);
  const machine = {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    date: new Date().toISOString().slice(0, 10),
  };
  const results: LocalResults = { machine, figures };
  writeFileSync(values.json, `${JSON.stringify(results, null, 1)}\n`);
  for (const figure of figures) console.log(describe(figure));
  console.log(`written to ${values.json}`);
  return figures.every(({ holds }) => holds !== false) ? 0 : 1;
}

function compiled(home: string, name: string): string {
  const target = path.join(BUILD, name);
  const source = path.join(REPOSITORY, 'test', 'bench', 'programs', `${name}.cu`);
  execFileSync(path.join(home, 'bin', 'nvcc'), ['-std=c++17', '-O2', source, '-o', target], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return target;
}

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

function describe({ name, value, unit, reference, ratio, limit, holds }: Figure): string {
  const parts = [`${name}: ${value.toPrecision(4)} ${unit}`];
  if (ratio !== undefined) parts.push(`${ratio.toFixed(2)} x ${reference}`);
  if (limit !== undefined) parts.push(`${limit}: ${holds ? 'holds' : 'DOES NOT HOLD'}`);
  return parts.join(', ');
}
