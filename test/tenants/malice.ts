import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, statSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { sessionDirectories } from '@nvidia-virtual/node-state/paths';
import { environmentFor } from '../cuda-program.js';
import { childrenOf, lookUntil, nvmlReaders, pause, residentMemory, until } from '../processes.js';
import type { TestNode } from './node.js';
import { type Case, type Scene, startTenant } from './scene.js';
import type { Tenant } from './tenant.js';
import { disagreements } from './truth.js';

const MIB = 2 ** 20;
const CONNECTIONS = 10_000;
const LONG_KERNEL_S = 10;
/** How long the others are observed for the figures that are printed; they are not checked. */
const LOOK_MS = 1500;
/** An ordinary session needs some 10 MiB. */
const WORKER_MEMORY = 96 * MIB;
/** Of a session's report: it has a few hundred names. */
const REPORT = 256 * 1024;
/** Processes of the proxy for the second check, and for what programs see of NVML. */
const NVML_READERS = 2;
/** Sessions of the malicious tenant: few enough to be reached. */
const LIMITS = { sessions: 32, threads: 64, handles: 10_000, pinnedMemoryBytes: 64 * MIB };

/** Arguments of each mode of test/tenants/malice.cu. */
const MALICE: Record<string, (allocation: AllocationMessage) => string[]> = {
  connections: ({ socketPath }) => [socketPath, String(CONNECTIONS)],
  hellos: ({ socketPath }) => [socketPath],
  socket: () => [],
  rings: () => [],
  truncate: () => [],
  silence: () => [],
  flood: () => [],
  long: () => [String(LONG_KERNEL_S)],
  threads: () => [],
  reports: () => [],
};

export const malice: Case = {
  name: 'malice',
  about:
    'tenants that flood, send garbage, never read, truncate shared files or never end: ' +
    'the others continue without an error',
  async play(scene) {
    const { node, tally } = scene;
    const check = await node.create({ memoryBytes: 64 * MIB, sharePercent: 25 });
    const busy = await node.create({ memoryBytes: 64 * MIB, sharePercent: 25 });
    const bad = await node.create({
      name: 'bad',
      memoryBytes: 64 * MIB,
      sharePercent: 50,
      limits: LIMITS,
    });
    const good = [
      startTenant(scene, check, 'check'),
      startTenant(scene, busy, 'saturate', 1),
    ] as const;
    const parties: Parties = { good, bad, busy };
    tally.judge('tenants that behave well', await goOn(good));
    // Their pipes count as open files of the proxy.
    const readers = () => childrenOf(node.pid).filter((pid) => nvmlReaders().includes(pid));
    await until(() => readers().length === NVML_READERS);
    tally.judge('what reads NVML', readers().length === NVML_READERS ? [] : [String(readers())]);
    console.log(
      'what two tenants keep beside malice, of what they have beside the same load without malice:',
    );
    for (const [mode, args] of Object.entries(MALICE)) {
      const without = await suffer(scene, parties, ['tame', mode, ...args(bad)]);
      const kept = await suffer(scene, parties, [mode, ...args(bad)]);
      print(`tenants.kept.time.${mode}`, kept.time / without.time);
      print(`tenants.kept.calls.${mode}`, kept.calls / without.calls);
    }
    for (const tenant of good) tally.judge('the end of a tenant', await tenant.stop());
  },
};

interface Parties {
  /** One tenant that compares its results with pauses, and one that always has work for the GPU. */
  readonly good: readonly [Tenant, Tenant];
  /** The allocation of the second. */
  readonly busy: AllocationMessage;
  readonly bad: AllocationMessage;
}

interface Having {
  /**
   * The part of the busy tenant's demand in which it had the GPU, as counted by the arbiter:
   * independent of processors.
   */
  readonly time: number;
  /** Calls per second of the tenant with pauses. Depends on processors. */
  readonly calls: number;
}

function print(name: string, value: number): void {
  console.log(JSON.stringify({ name, value: Number(value.toPrecision(3)), unit: 'ratio' }));
}

/** Runs one malicious mode and checks all tenants. @returns the figures of the honest ones */
async function suffer(
  scene: Scene,
  { good, bad, busy }: Parties,
  args: readonly string[],
): Promise<Having> {
  const { node } = scene;
  const judge = (what: string, problems: readonly string[]) =>
    scene.tally.judge(`${args.slice(0, 2).join(' ')}: ${what}`, problems);
  const files = node.openFiles();
  const { process, problems } = await start(scene, args, bad);
  judge('the malice', problems);
  const had = await look(node, good[0], busy);
  judge('the others', await goOn(good));
  judge('what it takes of the node', await takings(scene, bad));
  judge(
    'that it goes on',
    isOver(process) ? [`it ended: ${process.exitCode ?? process.signalCode}`] : [],
  );
  process.kill('SIGKILL');
  judge('what it leaves behind', await disagreements(node, bad, []));
  const more = () => beyond(node.openFiles(), files);
  judge('what the proxy has open', await lookUntil(more, (names) => names.length === 0));
  judge('the proxy', node.alive ? [] : ['it died']);
  const next = startTenant(scene, bad, 'check');
  judge('the next program of that tenant', [...(await next.goesOn()), ...(await next.stop())]);
  await node.until(bad, (now) => now.sessions.length === 0);
  return had;
}

/** It has at most as many workers as sessions, and neither they nor their files grow. */
async function takings({ node }: Scene, allocation: AllocationMessage): Promise<string[]> {
  const { sessions } = await node.look(allocation);
  const large = sessions
    .map(({ workerPid }) => residentMemory(workerPid))
    .filter((bytes) => bytes > WORKER_MEMORY);
  return [
    ...(sessions.length > LIMITS.sessions ? [`it has ${sessions.length} sessions`] : []),
    ...reportSizes(node, allocation)
      .filter((bytes) => bytes > REPORT)
      .map((bytes) => `one of its workers has written a report of ${bytes} bytes`),
    ...large.map((bytes) => `one of its workers holds ${(bytes / MIB).toFixed(0)} MiB`),
  ];
}

function reportSizes(node: TestNode, allocation: AllocationMessage): number[] {
  const sizeOf = (session: string) =>
    statSync(path.join(session, 'report'), { throwIfNoEntry: false })?.size ?? 0;
  return sessionDirectories(node.directoryOf(allocation)).map(sizeOf);
}

/**
 * Entries that were not there before. An entry of `before` may have been open only for the moment
 * of the read.
 */
function beyond(now: readonly string[], before: readonly string[]): string[] {
  const known = [...before];
  return now.filter((name) => {
    const place = known.indexOf(name);
    if (place >= 0) known.splice(place, 1);
    return place < 0;
  });
}

async function goOn(tenants: readonly Tenant[]): Promise<string[]> {
  return (await Promise.all(tenants.map((tenant) => tenant.goesOn(100)))).flat();
}

async function look(node: TestNode, thinking: Tenant, busy: AllocationMessage): Promise<Having> {
  const [before, calls, begin] = [
    (await node.look(busy)).time,
    thinking.entry.calls,
    performance.now(),
  ];
  await pause(LOOK_MS);
  const { granted, overrun, waited } = (await node.look(busy)).time;
  const had = granted + overrun - before.granted - before.overrun;
  const paces = thinking.entry.calls - calls;
  return {
    time: had / (had + waited - before.waited),
    calls: (paces / (performance.now() - begin)) * 1000,
  };
}

function isOver({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Waits until the malice has begun. */
async function start(
  { programs, directory }: Scene,
  args: readonly string[],
  { socketPath }: AllocationMessage,
) {
  const said = openSync(path.join(directory, `malice-${args.join('-').replaceAll('/', '')}`), 'w');
  const process: ChildProcess = spawn(programs.malice, args, {
    stdio: ['ignore', 'pipe', said],
    env: environmentFor(socketPath),
  });
  let ready = false;
  createInterface(process.stdout as NodeJS.ReadableStream).on('line', (line) => {
    ready ||= line === 'ready';
  });
  await until(() => ready || isOver(process));
  return {
    process,
    problems: ready
      ? []
      : [`it did not begin: ${process.exitCode ?? process.signalCode ?? 'it hangs'}`],
  };
}
