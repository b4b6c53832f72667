import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runChild } from '../child.js';
import { cudaHome } from '../conformance/builds.js';
import { INTERPOSER, REPOSITORY } from '../paths.js';
import { pause, until } from '../processes.js';
import { randomNumbers } from '../random.js';
import { Diary, type Entry } from './diary.js';
import { Server } from './server.js';

const HELP = `Kills programs and workers with -9 at random moments, and looks for what is left behind.
  --kills N    how many (default: 200)
  --seed N     for the same moments again (default: from the clock)`;
const MEMORY = '256MiB';
const PROBE_EVERY = 10;
const MOMENT_MILLISECONDS = 250;
const GONE_MILLISECONDS = 5_000;
const ERROR_NANOSECONDS = 1_000_000_000n;

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '200' }, seed: { type: 'string' }, help: { type: 'boolean', default: false } },
});

interface Tally {
  passed: number;
  problems: string[];
  insideCall: number;
}

if (values.help) console.log(HELP);
else process.exitCode = await main(Number(values.kills), Number(values.seed ?? Date.now() % 1_000_000));

async function main(kills: number, seed: number): Promise<number> {
  const programs = await compile();
  const before = sharedMemory();
  const directory = mkdtempSync(path.join(tmpdir(), 'kill-'));
  const tally: Tally = { passed: 0, problems: [], insideCall: 0 };
  console.log(`${kills} kills, seed ${seed} (--seed ${seed} chooses the same moments again)`);
  try {
    await killing(await Server.start(directory, MEMORY), directory, programs, { kills, random: randomNumbers(seed), tally });
    const left = readdirSync(directory).filter((name) => !['log', 'diary'].includes(name));
    judge(tally, left.length === 0 ? [] : [`left in the directory of the proxy: ${left.join(', ')}`]);
    const shared = sharedMemory().filter((name) => !before.includes(name));
    judge(tally, shared.length === 0 ? [] : [`left in /dev/shm: ${shared.join(', ')}`]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  console.log(`${tally.insideCall} of ${kills} kills fell inside a call`);
  console.log(`${tally.passed} passed, ${tally.problems.length} failed`);
  return tally.problems.length > 0 ? 1 : 0;
}

interface Programs {
  readonly victim: string;
  readonly probe: string;
}

interface Plan {
  readonly kills: number;
  readonly random: () => number;
  readonly tally: Tally;
}

async function killing(server: Server, directory: string, programs: Programs, { kills, random, tally }: Plan): Promise<void> {
  const free = await probe(programs, server);
  // The line of a session comes when the proxy has closed all that it had open for it.
  await until(() => server.log().includes('"msg":"session"'), GONE_MILLISECONDS);
  const clean = await settled(server);
  for (let i = 0; i < kills && server.alive; ++i) {
    const target = random() < 0.5 ? 'program' : 'worker';
    const problems = await killOne(server, directory, programs, target, random() * MOMENT_MILLISECONDS, tally);
    const files = await settled(server, clean);
    if (files !== clean) problems.push(`the proxy keeps files open: ${files}; before: ${clean}`);
    if (i % PROBE_EVERY === PROBE_EVERY - 1) {
      const now = await probe(programs, server).catch((error: Error) => error.message);
      if (now !== free) problems.push(`the next program: ${now}; before: ${free}`);
      await settled(server, clean);
    }
    judge(
      tally,
      problems.map((problem) => `kill ${i + 1}, of the ${target}: ${problem}`),
    );
  }
  judge(tally, server.alive ? [] : [`the proxy died:\n${server.log()}`]);
  judge(tally, (await server.stop()) ? [] : ['the proxy did not end when it was asked to']);
  judge(tally, existsSync(server.socket) ? ['the socket is left behind'] : []);
}

/** Lets a program run for a moment and kills it or its worker. Returns what was wrong afterwards. */
async function killOne(server: Server, directory: string, programs: Programs, target: string, moment: number, tally: Tally) {
  const diary = new Diary(path.join(directory, 'diary'));
  const victim = start(programs.victim, diary.path, server.socket);
  try {
    if (target === 'worker' && !(await until(() => server.workers().length > 0, GONE_MILLISECONDS))) return ['it got no worker'];
    await pause(moment);
    const killed = process.hrtime.bigint();
    for (const pid of target === 'worker' ? server.workers() : [victim.pid as number]) process.kill(pid, 'SIGKILL');
    if (diary.read().some(({ state }) => state === 'inside a call')) ++tally.insideCall;
    const ended = await until(() => victim.exitCode !== null || victim.signalCode !== null, GONE_MILLISECONDS);
    const problems = ended ? [] : [`the program hangs: ${JSON.stringify(diary.read().map(({ state, calls }) => ({ state, calls })))}`];
    if (target === 'worker' && ended) problems.push(...lateErrors(diary.read(), killed, victim));
    if (!(await until(() => server.workers().length === 0, GONE_MILLISECONDS))) problems.push('a worker is left behind');
    return problems;
  } finally {
    victim.kill('SIGKILL');
    diary.close();
  }
}

/** The threads of a program whose worker is dead see an error within a second. */
function lateErrors(entries: readonly Entry[], killed: bigint, victim: ChildProcess): string[] {
  if (victim.exitCode !== 3) return [`the program ended with ${victim.exitCode ?? victim.signalCode}`];
  return entries.flatMap(({ error, when }) => {
    if (error === 0) return ['a thread ended without an error'];
    const late = when - killed;
    return late > ERROR_NANOSECONDS ? [`the error came after ${late / 1_000_000n} ms`] : [];
  });
}

function start(program: string, argument: string, socket: string): ChildProcess {
  return spawn(program, [argument], { stdio: 'ignore', env: environment(socket) });
}

function environment(socket: string): NodeJS.ProcessEnv {
  return { ...process.env, NVIDIA_VIRTUAL_SOCKET: socket, LD_LIBRARY_PATH: INTERPOSER };
}

async function probe({ probe }: Programs, server: Server): Promise<string> {
  const outcome = await runChild(probe, [], { cwd: '/', env: environment(server.socket), seconds: 30 });
  if (outcome.status !== 0) throw new Error(`the probe ended with ${outcome.status} ${outcome.stderr}`);
  return `${outcome.stdout.trim()} bytes free`;
}

/** What the proxy has open once no worker is left; waits a while for it to become what it is to be. */
async function settled(server: Server, expected?: string): Promise<string> {
  const files = () => server.openFiles().join(' ');
  await until(() => server.workers().length === 0 && (expected === undefined || files() === expected), GONE_MILLISECONDS);
  return files();
}

function judge(tally: Tally, problems: readonly string[]): void {
  if (problems.length === 0) ++tally.passed;
  for (const problem of problems) console.log(problem);
  tally.problems.push(...problems);
}

function sharedMemory(): string[] {
  return readdirSync('/dev/shm');
}

async function compile(): Promise<Programs> {
  const home = await cudaHome();
  const directory = path.join(REPOSITORY, 'build', 'kill');
  mkdirSync(directory, { recursive: true });
  const compiled = (name: string) => {
    const target = path.join(directory, name);
    const source = path.join(REPOSITORY, 'test', 'kill', `${name}.cu`);
    execFileSync(path.join(home ?? '', 'bin', 'nvcc'), ['-std=c++17', '-O2', source, '-o', target], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    return target;
  };
  return { victim: compiled('victim'), probe: compiled('probe') };
}
