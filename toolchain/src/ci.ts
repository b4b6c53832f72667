import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './command.js';
import { runMain } from './errors.js';
import { buildDirectory } from './repository.js';
import { add, closingLine, honest, NONE, readClosingLine, type TestCounts } from './test-counts.js';

interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Whether its last line has test counts. False: the step counts as one check. */
  readonly counts?: boolean;
  /** Runs with the lowest priority. */
  readonly inBackground?: boolean;
}

interface Outcome {
  readonly step: Step;
  readonly counts: TestCounts;
}

const LOGS = buildDirectory('ci');
const TOOLCHAIN = path.join('toolchain', 'dist');

function node(name: string, script: string, ...args: string[]): Step {
  return { name, command: process.execPath, args: [script, ...args] };
}

function tests(name: string, script: string, ...args: string[]): Step {
  return { ...node(name, script, ...args), counts: true };
}

/**
 * Run first: the demo, because it must build what it needs in a fresh clone, and `npm test`, which
 * creates the rest of the release build. The other steps run even if these fail.
 */
const FIRST: readonly Step[] = [
  { name: 'demo', command: 'npm', args: ['run', 'demo'] },
  { name: 'npm test', command: 'npm', args: ['test'], counts: true },
];
/** Steps that run alone: they depend on time, or keep both processors of CI busy. */
const ALONE: readonly Step[] = [
  // Some programs ask about work of 100 ms, at calls that take longer here.
  tests(
    'conformance, suspended and moved at each call',
    path.join('test', 'dist', 'conformance', 'main.js'),
    '--suspended',
    '--moves',
  ),
  tests('many tenants', path.join('test', 'dist', 'tenants', 'main.js')),
];
/** Wait for half of their time. The second one uses the whole machine as a node. */
const KUBERNETES: readonly Step[] = [
  tests('parts before an API server', path.join(TOOLCHAIN, 'test.js'), 'control-plane'),
  tests('Kubernetes', path.join('test', 'dist', 'kubernetes', 'main.js')),
];
const TSAN = ['tsan', '--only', 'wire', '--test', 'worker/races'];
/** Run beside KUBERNETES, with the lowest priority: builds for SANITIZERS, and computations. */
const BESIDE: readonly Step[] = [
  {
    name: 'biome',
    command: path.join('node_modules', '.bin', 'biome'),
    args: ['ci', '--colors=off', '.'],
  },
  node('clang-format', path.join(TOOLCHAIN, 'format-check.js')),
  node('house rules', path.join(TOOLCHAIN, 'rules', 'main.js')),
  node('ABI against cuda.h', path.join(TOOLCHAIN, 'abi-check.js')),
  node('build with ASan and UBSan', path.join(TOOLCHAIN, 'preset.js'), 'asan', '--build'),
  node('build with ThreadSanitizer', path.join(TOOLCHAIN, 'preset.js'), ...TSAN, '--build'),
  node('build of the fuzz targets', path.join(TOOLCHAIN, 'fuzz.js'), '--build'),
  tests('CUDA libraries', path.join('test', 'dist', 'libraries', 'main.js')),
].map((step) => ({ ...step, inBackground: true }));
/** Run after KUBERNETES. */
const AFTER_KUBERNETES: readonly Step[] = [
  tests(
    'conformance, every call waits; coverage of driver calls',
    path.join('test', 'dist', 'conformance', 'main.js'),
    '--synchronous',
    '--coverage',
  ),
  tests('kill tests', path.join('test', 'dist', 'kill', 'main.js')),
  tests('CUDA runtimes', path.join('test', 'dist', 'runtimes', 'main.js')),
  tests('NCCL', path.join('test', 'dist', 'nccl', 'main.js')),
  tests('public test suites', path.join('test', 'dist', 'suites', 'main.js'), '--ci'),
  tests('clients of NVML', path.join('test', 'dist', 'nvml', 'main.js')),
  tests('portable build', path.join('test', 'dist', 'portable', 'main.js')),
  tests('container images', path.join('test', 'dist', 'images', 'main.js')),
];
/** Run after KUBERNETES and BESIDE, each list beside the others. */
const SANITIZERS: readonly (readonly Step[])[] = [
  [tests('AddressSanitizer and UBSan', path.join(TOOLCHAIN, 'preset.js'), 'asan')],
  [
    tests('ThreadSanitizer', path.join(TOOLCHAIN, 'preset.js'), ...TSAN),
    tests('fuzzing', path.join(TOOLCHAIN, 'fuzz.js'), '--seconds', '30'),
  ],
];

/**
 * Runs all checks that a change must pass. Called by .ci/run after the installation of packages.
 */
await runMain(async () => {
  mkdirSync(LOGS, { recursive: true });
  const outcomes = [...(await runLane(FIRST, console.log)), ...(await runLane(ALONE))];
  const kubernetes = runLane(KUBERNETES);
  const beside = Promise.all([kubernetes, runLane(BESIDE)]);
  const lanes = [
    beside,
    kubernetes.then(() => runLane(AFTER_KUBERNETES)),
    ...SANITIZERS.map((steps) => beside.then(() => runLane(steps))),
  ];
  outcomes.push(...(await Promise.all(lanes)).flat(2));
  const failed = outcomes.filter(({ counts }) => counts.failed > 0).map(({ step }) => step.name);
  const sum = outcomes.map(({ counts }) => counts).reduce(add, NONE);
  console.log(
    failed.length === 0 ? '\nEvery step passed.' : `\nFailed steps: ${failed.join(', ')}`,
  );
  console.log(closingLine(sum));
  return failed.length === 0 ? 0 : 1;
});

async function runLane(
  steps: readonly Step[],
  onLine?: (line: string) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const step of steps) outcomes.push(await runStep(step, onLine));
  return outcomes;
}

/** Prints the output of a parallel step only if it fails. The full output is in build/ci. */
async function runStep(step: Step, onLine?: (line: string) => void): Promise<Outcome> {
  const started = Date.now();
  console.log(`-- ${step.name}: started`);
  const { inBackground = false } = step;
  const options = { inBackground, ...(onLine && { onLine }) };
  const { status, output } = await runCommand(step.command, step.args, options);
  writeFileSync(path.join(LOGS, `${step.name.replaceAll(/\W+/g, '-')}.log`), output);
  const counts = step.counts
    ? honest(readClosingLine(output), status)
    : { passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, skipped: 0 };
  if (counts.failed > 0 && !onLine) console.log(`\n${output}`);
  const seconds = Math.round((Date.now() - started) / 1000);
  // Print no counts here, so that they are not taken for the sum at the end.
  console.log(
    `-- ${step.name}: ${counts.failed > 0 ? `FAILED with status ${status}` : 'passed'} after ` +
      `${seconds} s`,
  );
  return { step, counts };
}
