import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { randomNumbers } from '@nvidia-virtual/service/testing/random';
import { runChild } from '../child.js';
import { compileProgram, environmentFor } from '../cuda-program.js';
import { Diary, type Entry } from '../diary.js';
import {
  lookUntil,
  newSharedMemory,
  PATIENCE_MS,
  pause,
  sharedMemory,
  until,
} from '../processes.js';
import { Tally } from '../tally.js';
import { Server } from './server.js';

const HELP = `Kills programs and workers with -9 at random moments, and checks that nothing is \
left behind.
  --kills N    number of kills (default: 200)
  --seed N     repeats the same moments (default: from the clock)`;
const MEMORY = '256MiB';
const PROBE_EVERY = 10;
const MOMENT_MILLISECONDS = 250;

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else
  process.exitCode = await main(
    Number(values.kills),
    Number(values.seed ?? Date.now() % 1_000_000),
  );

async function main(kills: number, seed: number): Promise<number> {
  const programs = {
    victim: await compileProgram('kill', 'victim'),
    probe: await compileProgram('kill', 'probe'),
  };
  const before = sharedMemory();
  const directory = mkdtempSync(path.join(tmpdir(), 'kill-'));
  const tally = new Tally();
  let inside = 0;
  console.log(`${kills} kills, seed ${seed} (--seed ${seed} chooses the same moments again)`);
  try {
    inside = await killing(await Server.start(directory, MEMORY), directory, programs, {
      kills,
      random: randomNumbers(seed),
      tally,
    });
    const left = readdirSync(directory).filter((name) => !['log', 'diary'].includes(name));
    tally.judge('left in the directory of the proxy', left);
    tally.judge('left in /dev/shm', await newSharedMemory(before));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  console.log(`${inside} of ${kills} kills fell inside a call`);
  return tally.close();
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

/** @returns how many kills fell inside a call */
async function killing(
  server: Server,
  directory: string,
  programs: Programs,
  { kills, random, tally }: Plan,
): Promise<number> {
  const free = await probe(programs, server);
  // The log line of a session appears after the proxy has closed all its files.
  await until(() => server.log().includes('"msg":"session"'));
  const clean = await settled(server);
  let inside = 0;
  for (let i = 0; i < kills && server.alive; ++i) {
    const target = random() < 0.5 ? 'program' : 'worker';
    const { insideCall, problems } = await killOne(
      server,
      directory,
      programs,
      target,
      random() * MOMENT_MILLISECONDS,
    );
    if (insideCall) inside++;
    const files = await settled(server, clean);
    if (files !== clean) problems.push(`the proxy keeps files open: ${files}; before: ${clean}`);
    if (i % PROBE_EVERY === PROBE_EVERY - 1) {
      const now = await probe(programs, server).catch((error: Error) => error.message);
      if (now !== free) problems.push(`the next program: ${now}; before: ${free}`);
      await settled(server, clean);
    }
    tally.judge(`kill ${i + 1}, of the ${target}`, problems);
  }
  tally.judge('the proxy', server.alive ? [] : [`it died:\n${server.log()}`]);
  tally.judge('the proxy', (await server.stop()) ? [] : ['it did not end when it was asked to']);
  tally.judge('the socket', existsSync(server.socket) ? ['it is left behind'] : []);
  return inside;
}

/** Lets a program run for a moment and kills it or its worker. @returns the problems found */
async function killOne(
  server: Server,
  directory: string,
  programs: Programs,
  target: string,
  moment: number,
) {
  const diary = new Diary(path.join(directory, 'diary'));
  const victim = start(programs.victim, diary.path, server.socket);
  try {
    if (target === 'worker' && !(await until(() => server.workers().length > 0)))
      return { insideCall: false, problems: ['it got no worker'] };
    await pause(moment);
    for (const pid of target === 'worker' ? server.workers() : [victim.pid as number])
      process.kill(pid, 'SIGKILL');
    const then = diary.read();
    const insideCall = then.some(({ state }) => state === 'inside a call');
    const hasEnded = () => victim.exitCode !== null || victim.signalCode !== null;
    // A worker that had not answered a call is replaced without loss: the program asks for another
    // one, and continues.
    const goesOn = () =>
      target === 'worker' &&
      then.every(({ calls }) => calls === 0) &&
      diary.read().some(({ calls }) => calls > 0);
    await until(() => hasEnded() || goesOn());
    if (!hasEnded() && goesOn()) {
      victim.kill('SIGKILL');
      await until(hasEnded);
      return {
        insideCall,
        problems: (await until(() => server.workers().length === 0))
          ? []
          : ['a worker is left behind'],
      };
    }
    const ended = hasEnded();
    const problems = ended
      ? []
      : [
          'the program hangs: ' +
            `${JSON.stringify(diary.read().map(({ state, calls }) => ({ state, calls })))}`,
        ];
    if (target === 'worker' && ended) problems.push(...missingErrors(diary.read(), victim));
    if (!(await until(() => server.workers().length === 0)))
      problems.push('a worker is left behind');
    return { insideCall, problems };
  } finally {
    victim.kill('SIGKILL');
    diary.close();
  }
}

/** Problems of a program whose worker was killed. Each thread must end with an error. */
function missingErrors(entries: readonly Entry[], victim: ChildProcess): string[] {
  if (victim.exitCode !== 3)
    return [`the program ended with ${victim.exitCode ?? victim.signalCode}`];
  return entries.some(({ error }) => error === 0) ? ['a thread ended without an error'] : [];
}

function start(program: string, argument: string, socket: string): ChildProcess {
  return spawn(program, [argument], { stdio: 'ignore', env: environmentFor(socket) });
}

async function probe({ probe }: Programs, server: Server): Promise<string> {
  const outcome = await runChild(probe, [], {
    cwd: '/',
    env: environmentFor(server.socket),
    seconds: PATIENCE_MS / 1000,
  });
  if (outcome.status !== 0)
    throw new Error(`the probe ended with ${outcome.status} ${outcome.stderr}`);
  return `${outcome.stdout.trim()} bytes free`;
}

/** Open files of the proxy once no worker is left. Waits for the expected value. */
function settled(server: Server, expected?: string): Promise<string> {
  // The files are read once per look: the next moment a late connection may open others.
  return lookUntil(
    () => server.openFiles().join(' '),
    (files) => server.workers().length === 0 && (expected === undefined || files === expected),
    { everyMs: 3 },
  );
}
