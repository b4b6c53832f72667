import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { runChild } from '../child.js';
import { REPOSITORY } from '../paths.js';
import {
  type Build,
  compileBuilds,
  cudaHome,
  gpusOfMachine,
  lastChange,
  listBuilds,
} from './builds.js';
import { callsOf, coverage } from './coverage.js';
import { type Column, columns, commandFor, MODES, type Mode, moves } from './modes.js';
import {
  difference,
  ownJudgement,
  parseRecording,
  type Recording,
  sortUnordered,
} from './recording.js';
import { SuspendingBuild } from './suspending.js';

const RECORDINGS = path.join(REPOSITORY, 'test', 'conformance', 'recordings');
const HELP = `Runs the conformance programs and compares the output with that of a real GPU.
  --modes LIST    of ${MODES.join(', ')} (default: simulated)
  --build DIR     directory of the compiled programs (default: build/conformance)
  --only LIST     only these programs (a name includes all its builds)
  --jobs N        programs at a time (default: 2)
  --seconds N     timeout of a run (default: 60)
  --synchronous   every call waits for its reply
  --suspended     suspend the session before each call; its memory leaves and comes back
  --moves         with --suspended: it also comes back on another simulated GPU
  --show          print the output of each run
  --coverage      count calls: fail for each supported one that no program made with success
  --json FILE     also write the results to this file`;

/** With --coverage: the calls that programs made with success, by mode. */
const made = new Map<Mode, Set<string>>();

/** With --suspended: how often each program was suspended. */
const suspensions = new Map<string, SuspendingBuild['suspensions']>();

interface Result {
  readonly program: string;
  readonly column: string;
  readonly problem: string | null;
  /** This machine has fewer GPUs than the program needs. */
  readonly skipped: boolean;
}

interface Run {
  readonly build: Build;
  readonly column: Column;
}

const { values } = parseArgs({
  options: {
    modes: { type: 'string', default: 'simulated' },
    build: { type: 'string', default: path.join(REPOSITORY, 'build', 'conformance') },
    only: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '60' },
    synchronous: { type: 'boolean', default: false },
    suspended: { type: 'boolean', default: false },
    moves: { type: 'boolean', default: false },
    show: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  const only = values.only?.split(',');
  const builds = listBuilds().filter(
    ({ name }) => !only || only.includes(name) || only.includes(name.split('.')[0] ?? ''),
  );
  if (builds.length === 0)
    throw new Error(`no program is called ${values.only}; record.py list names them`);
  compileBuilds(values.build, await cudaHome());
  const { synchronous, suspended, moves: moving } = values;
  const chosen = columns(modes(), { synchronous, suspended, moves: moving });
  const all = builds.flatMap((build) => chosen.map((column) => ({ build, column })));
  const gpus = chosen.some(({ mode }) => mode !== 'simulated') ? gpusOfMachine() : 0;
  // Without any GPU the programs for one run, and fail.
  const lacks = ({ build, column }: Run) =>
    column.mode !== 'simulated' && build.gpus > Math.max(gpus, 1);
  const results: Result[] = all
    .filter((run) => lacks(run))
    .map((run) => ({ ...namesOf(run), problem: null, skipped: true }));
  const runs = all.filter((run) => !lacks(run));
  const worker = async (pending: typeof runs) => {
    for (let next = pending.shift(); next; next = pending.shift()) {
      const result = {
        ...namesOf(next),
        problem: (await check(next.build, next.column)) ?? null,
        skipped: false,
      };
      results.push(result);
      if (result.problem !== null)
        console.log(`${result.program} (${result.column}): ${result.problem}`);
    }
  };
  const together = runs.filter(({ build }) => !build.alone);
  await Promise.all(Array.from({ length: Number(values.jobs) }, () => worker(together)));
  await worker(runs.filter(({ build }) => build.alone));
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(results, null, 1)}\n`);
  printTable(chosen, results);
  printNotRecorded(builds);
  const failed = results.filter(({ problem }) => problem !== null).length;
  const skipped = results.filter((result) => result.skipped).length;
  const idle = values.suspended ? printSuspensions() : 0;
  const calls = printCoverage();
  const passed = results.length - failed - skipped + calls.passed;
  const allFailed = failed + idle + calls.failed;
  const note = skipped > 0 ? `, ${skipped} skipped` : '';
  console.log(`${passed} passed, ${allFailed} failed${note}`);
  return allFailed > 0 ? 1 : 0;
}

function namesOf({ build, column }: Run): Pick<Result, 'program' | 'column'> {
  return { program: build.name, column: column.name };
}

function modes(): Mode[] {
  return values.modes.split(',').map((name) => {
    const mode = MODES.find((known) => known === name);
    if (!mode) throw new Error(`--modes ${name}: there are ${MODES.join(', ')}`);
    return mode;
  });
}

async function check(build: Build, column: Column): Promise<string | undefined> {
  const cwd = mkdtempSync(path.join(tmpdir(), 'conformance-'));
  const traced = values.coverage && column.mode !== 'native';
  const trace = traced ? `${cwd}.json` : undefined;
  const { command, args, env } = commandFor(build, column, values.build, trace);
  const suspending = column.suspended
    ? new SuspendingBuild(`${cwd}-build`, moves(build, column))
    : undefined;
  try {
    const outcome = await runChild(command, args, {
      cwd,
      env: suspending ? { ...env, NVIDIA_VIRTUAL_BUILD: suspending.directory } : env,
      seconds: Number(values.seconds),
    });
    const stderr = column.mode === 'simulated' ? withoutRemarks(outcome.stderr) : outcome.stderr;
    const sorted = { ...outcome, stdout: sortUnordered(outcome.stdout, build.unordered), stderr };
    if (values.show)
      console.log(
        `== ${build.name} (${column.name}), exit status ` +
          `${sorted.status}\n${sorted.stdout}${sorted.stderr}`,
      );
    if (build.judgesItself && !existsSync(recordingOf(build))) return ownJudgement(sorted);
    const recording = recorded(build);
    const problem = typeof recording === 'string' ? recording : difference(recording, sorted);
    const remark = suspending?.suspensions.failure || /^gpu-proxy: .*$/m.exec(outcome.stderr)?.[0];
    return problem !== undefined && remark !== undefined ? `${problem} (${remark})` : problem;
  } finally {
    if (trace !== undefined) {
      const calls = made.get(column.mode) ?? new Set();
      for (const call of callsOf(trace)) calls.add(call);
      made.set(column.mode, calls);
      rmSync(trace, { force: true });
    }
    if (suspending) {
      suspensions.set(build.name, suspending.suspensions);
      rmSync(suspending.directory, { recursive: true, force: true });
    }
    rmSync(cwd, { recursive: true, force: true });
  }
}

/** @returns 1 if nothing was suspended, or no memory left */
function printSuspensions(): number {
  const all = [...suspensions.values()];
  const times = all.reduce((sum, one) => sum + one.times, 0);
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  const moved = all.reduce((sum, one) => sum + one.moves, 0);
  const never = [...suspensions].flatMap(([name, one]) => (one.times === 0 ? [name] : []));
  console.log(
    `${times} suspensions, in which ${formatMemorySize(bytes)} left and came back, and ` +
      `${moved} moves to another GPU; ` +
      `never suspended: ${never.sort().join(', ') || 'none'}`,
  );
  return times > 0 && bytes > 0 ? 0 : 1;
}

/**
 * The simulated GPU reports on standard error why it cannot run an image. A real one prints nothing
 * there.
 */
function withoutRemarks(stderr: string): string {
  return stderr.replace(/^simulated GPU: .*\n/gm, '');
}

function recordingOf(build: Build): string {
  return path.join(RECORDINGS, `${build.name}.txt`);
}

/** The recording of this program, or an error message. */
function recorded(build: Build): Recording | string {
  let data: Buffer;
  try {
    data = readFileSync(recordingOf(build));
  } catch {
    return 'there is no recording of it; make one on a machine with a GPU: test/h200.sh record';
  }
  const recording = parseRecording(data);
  const current = recording.program === build.name && recording.hash === build.hash;
  return current
    ? recording
    : 'its recording was made from other sources; record it again: test/h200.sh record';
}

/** Programs that judge themselves, and that no real GPU has confirmed. */
function printNotRecorded(builds: readonly Build[]): void {
  const missing = builds.filter((build) => !existsSync(recordingOf(build)));
  if (missing.length === 0) return;
  const dated = missing.map(({ name, files }) => `${name} (since ${lastChange(files)})`);
  console.log(`${missing.length} not recorded: ${dated.join(', ')}`);
}

/** @returns counts of supported calls, with --coverage */
function printCoverage(): { passed: number; failed: number } {
  const total = { passed: 0, failed: 0 };
  for (const [mode, calls] of made) {
    const { supported, notMade, elsewhere } = coverage(calls, mode);
    total.passed += supported - notMade.length;
    total.failed += notMade.length;
    const list = notMade.length > 0 ? `: ${notMade.join(' ')}` : '';
    console.log(
      `${mode}: ${notMade.length} of ${supported} supported calls not made with success${list}`,
    );
    if (elsewhere.length > 0)
      console.log(`${elsewhere.length} are supported on other GPUs only: ${elsewhere.join(' ')}`);
  }
  return total;
}

function printTable(chosen: readonly Column[], results: readonly Result[]): void {
  for (const column of chosen) {
    const own = results.filter((result) => result.column === column.name);
    const ran = own.filter(({ skipped }) => !skipped);
    const bad = ran.filter(({ problem }) => problem !== null);
    console.log(
      `${column.name}: ${ran.length - bad.length} of ${ran.length} as recorded` +
        listed('; not: ', bad) +
        listed(
          '; skipped, because they need more GPUs: ',
          own.filter(({ skipped }) => skipped),
        ),
    );
  }
}

function listed(title: string, results: readonly Result[]): string {
  const names = results.map(({ program }) => program).sort();
  return names.length > 0 ? title + names.join(', ') : '';
}
