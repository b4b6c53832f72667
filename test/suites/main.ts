import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { resultFile } from '../bench/results.js';
import { runChild } from '../child.js';
import { GPU_PROXY, REPOSITORY } from '../paths.js';
import { Tally } from '../tally.js';
import { type Environment, prepare } from './environment.js';
import { type Expectation, expectations } from './expectations.js';
import { judge, readReport } from './outcomes.js';
import { SUITES, type Suite } from './suites.js';

const HELP = `Runs public test suites on the simulated GPU through the product.
  --only LIST     of ${SUITES.map(({ name }) => name).join(', ')} (default: all)
  --files LIST    only test files whose path contains one of these
  --ci            only the files that CI runs
  --jobs N        files at a time (default: 2)
  --seconds N     timeout of a file (default: 600)
  --json FILE     write the counts, for test/bench/results/suites.json
Failures that test/suites/expected/ lists are counted, but do not fail the run.`;

const RUNNER = path.join(REPOSITORY, 'test', 'suites', 'run.py');
const PROCESSES = path.join(REPOSITORY, 'test', 'suites', 'processes');

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    files: { type: 'string' },
    ci: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '600' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = await main();

interface Run {
  readonly suite: Suite;
  readonly environment: Environment;
  readonly file: string;
  readonly expected: readonly Expectation[];
}

interface Counts {
  readonly passed: number;
  readonly failedAsExpected: number;
  readonly failed: number;
}

async function main(): Promise<number> {
  const names = values.only?.split(',');
  const runs: Run[] = [];
  for (const suite of SUITES.filter(({ name }) => names?.includes(name) ?? true)) {
    const environment = await prepare(suite);
    const all = expectations(suite.name);
    for (const file of filesOf(suite, environment))
      runs.push({
        suite,
        environment,
        file,
        expected: all.filter(({ tests }) => tests?.startsWith(`${file}::`) ?? true),
      });
  }
  const tally = new Tally();
  let expected = 0;
  const programs = new Map<string, Counts>();
  const next = async () => {
    for (let run = runs.shift(); run; run = runs.shift()) {
      const counts = await play(run, tally);
      expected += counts.failedAsExpected;
      programs.set(run.suite.name, sum(counts, programs.get(run.suite.name)));
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, next));
  console.log(`${expected} failed as expected`);
  if (values.json) writeFileSync(values.json, resultFile(results(programs)));
  return tally.close();
}

function sum(one: Counts, other: Counts = { passed: 0, failedAsExpected: 0, failed: 0 }): Counts {
  return {
    passed: one.passed + other.passed,
    failedAsExpected: one.failedAsExpected + other.failedAsExpected,
    failed: one.failed + other.failed,
  };
}

function results(programs: ReadonlyMap<string, Counts>) {
  const what = values.ci || values.files ? 'a part of its test suite' : 'its test suite';
  return SUITES.flatMap(({ name, release }) => {
    const counts = programs.get(name);
    return counts ? [{ name: release, what, ...counts }] : [];
  });
}

function filesOf(suite: Suite, { tests }: Environment): readonly string[] {
  const parts = values.files?.split(',') ?? [''];
  const all = suite.directories.flatMap((directory) =>
    readdirSync(path.join(tests, directory))
      .filter((name) => /^test_.*\.py$/.test(name))
      .map((name) => path.join(directory, name)),
  );
  const chosen = values.ci ? suite.inCi : all;
  return chosen.filter((file) => parts.some((part) => file.includes(part)));
}

/** Runs one file. */
async function play(run: Run, tally: Tally): Promise<Counts> {
  const started = Date.now();
  const directory = mkdtempSync(path.join(tmpdir(), 'suite-'));
  try {
    const report = path.join(directory, 'report');
    const { stdout, stderr, status, timedOut } = await pytest(run, report, directory);
    const outcomes = readReport(report);
    const { passed, skipped, failedAsExpected, problems } = judge(outcomes, run.expected);
    const what = `${run.suite.name} ${run.file}`;
    for (let i = 0; i < passed; ++i) tally.judge(what, []);
    for (const problem of problems) tally.judge(what, [problem]);
    if (timedOut) tally.judge(what, [`it did not end within ${values.seconds} s`]);
    // All tests of the file may be skipped, or deselected: status 5.
    if (outcomes.length === 0 && status !== 0 && status !== 5)
      tally.judge(what, [`no test ran:\n${stdout}${stderr}`]);
    const seconds = Math.round((Date.now() - started) / 1000);
    const rest = `${failedAsExpected} failed as expected, ${problems.length} failed`;
    const closing = `${passed} passed, ${rest}, after ${seconds} s`;
    if (skipped > 0) tally.skip(what, `by the suite: ${skipped} tests`, skipped);
    console.log(`${what}: ${closing}`);
    return { passed, failedAsExpected, failed: problems.length };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function pytest({ suite, environment, file, expected }: Run, report: string, directory: string) {
  const { packages, tests } = environment;
  const leftOut = expected.filter(({ leftOut }) => leftOut);
  const options = ['-q', '--no-header', '--timeout=300', '--timeout-method=thread', '-Wignore'];
  const args = [
    ...['run', '--backend', 'simulated', '--memory', '4GiB', '--', 'python3', RUNNER],
    ...[packages, report, ...options, '-p', 'no:cacheprovider', ...suite.pytest],
    ...leftOut.flatMap(({ tests }) => (tests ? ['--deselect', tests] : [])),
    ...['--rootdir', tests, file],
  ];
  const env = {
    ...process.env,
    ...suite.environment(packages),
    HOME: directory,
    PYTHONDONTWRITEBYTECODE: '1',
    // For the processes that tests start.
    PYTHONPATH: [PROCESSES, packages].join(path.delimiter),
    SUITE_PACKAGES: packages,
  };
  const seconds = Number(values.seconds);
  return runChild(process.execPath, [GPU_PROXY, ...args], { cwd: tests, env, seconds });
}
