import { existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand, runVisibly } from './command.js';
import { cudaHome } from './cuda-compiler.js';
import { buildDirectory, REPOSITORY } from './repository.js';
import {
  honest,
  readClosingLine,
  readJestReport,
  readJunitReport,
  type TestCounts,
} from './test-counts.js';

/** A test runner. It prints while it runs; its report is read at the end. */
export interface Suite {
  readonly name: string;
  run(): Promise<TestCounts>;
}

const REPORTS = path.join(REPOSITORY, 'build', 'reports');

/** Tests that start Kubernetes programs, which take 15 minutes to build. */
const WITH_KUBERNETES = '/test/dist/(kubernetes|chart)/';

/** Tests that start other processes or take seconds. */
const WITH_PROCESSES = '\\.process\\.test\\.js$';

/** Jest's default is one worker less than processors, but many tests mostly wait for processes. */
const PARALLEL = ['--maxWorkers=2'];

/** TypeScript tests that start no other process. */
export function fastJestSuite(): Suite {
  return jest('jest', ...PARALLEL, '--testPathIgnorePatterns', WITH_PROCESSES, WITH_KUBERNETES);
}

/** TypeScript tests of all workspaces without Kubernetes. They use the release build. */
export function jestSuite(): Suite {
  return jest('jest', ...PARALLEL, '--testPathIgnorePatterns', WITH_KUBERNETES);
}

/** Tests that start an API server for each file. */
export function jestSuiteWithKubernetes(): Suite {
  return jest('jest with Kubernetes', ...PARALLEL, '--testPathPatterns', WITH_KUBERNETES);
}

function jest(name: string, ...options: string[]): Suite {
  const program = path.join(REPOSITORY, 'node_modules', 'jest', 'bin', 'jest.js');
  const file = `${name.replaceAll(' ', '-')}.json`;
  return {
    name,
    run: () =>
      reported(file, readJestReport, (report) =>
        nodeWithModules([program, '--json', '--outputFile', report, ...options]),
      ),
  };
}

/** @param selection options of ctest, for example `-R NAME` */
export function ctestSuite(preset: string, ...selection: string[]): Suite {
  const options = [
    '--test-dir',
    buildDirectory(preset),
    '-j',
    '2',
    '--output-on-failure',
    '--no-tests=error',
    ...selection,
  ];
  return {
    name: `ctest ${preset}`,
    async run() {
      // Some tests compile CUDA programs. Download the compiler before a test's timeout
      // starts.
      const env = { ...process.env, CUDA_HOME: await cudaHome((line) => console.log(line)) };
      const run = (report: string) =>
        runVisibly('ctest', [...options, '--output-junit', report], { env });
      return reported(`ctest-${preset}.xml`, readJunitReport, run);
    },
  };
}

/** A program of test/ that prints its counts in its last line. */
export function testProgram(name: string, ...args: string[]): Suite {
  return {
    name,
    run: async () => {
      const { status, output } = await runCommand(process.execPath, [testMain(name), ...args], {
        onLine: (line) => console.log(line),
      });
      return honest(readClosingLine(output), status);
    },
  };
}

export function hasTestProgram(name: string): boolean {
  return existsSync(testMain(name));
}

function testMain(name: string): string {
  return path.join(REPOSITORY, 'test', 'dist', name, 'main.js');
}

function nodeWithModules(args: readonly string[]): Promise<number> {
  const env = {
    ...process.env,
    NODE_OPTIONS:
      `${process.env['NODE_OPTIONS'] ?? ''} --experimental-vm-modules --no-warnings`.trim(),
  };
  return runVisibly(process.execPath, args, { env });
}

/** Deletes the report of an earlier run first. */
async function reported(
  name: string,
  read: (file: string) => TestCounts,
  run: (file: string) => Promise<number>,
): Promise<TestCounts> {
  mkdirSync(REPORTS, { recursive: true });
  const file = path.join(REPORTS, name);
  rmSync(file, { force: true });
  const status = await run(file);
  return honest(read(file), status);
}
