import type {
  AllocationMessage,
  CreateAllocationRequest,
  TimeUseMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { PATIENCE_MS, pause, watchStolen } from '../processes.js';
import { type Case, type Scene, startTenant } from './scene.js';
import type { Load } from './tenant.js';

const MIB = 2 ** 20;
/** Milliseconds of charged time that are compared. */
const LOOK_NS = 2e9;
const POINTS = 2;
/** Share of processor time. */
const MOST_STOLEN = 0.01;
/**
 * Milliseconds to wait for a quiet machine, for all cases together. Each case runs at least once.
 */
let patienceLeftMs = 60_000;
/** The maximum that a fixed share saves up: native/arbiter/README.md. */
const KEPT_NS = 100e6;
const KERNEL_MS = 1;

export interface Wish extends CreateAllocationRequest {
  readonly sharePercent: number;
  readonly load?: Load;
  readonly length?: number;
}

export const shares: Case = {
  name: 'shares',
  about:
    'GPU time by the arbiter: shares with burst and fixed, priorities, ' +
    'and all of the time for a lone tenant',
  async play(scene) {
    for (const policy of ['POLICY_BURST', 'POLICY_FIXED'] as const) {
      for (const percents of [
        [50, 50],
        [25, 75],
        [10, 20, 70],
      ]) {
        await divided(
          scene,
          percents.map((sharePercent) => ({ sharePercent, policy })),
        );
      }
    }
    await weighed(scene);
    await limited(scene);
    await outranked(scene);
    await copying(scene);
    await alone(scene);
  },
};

/** Tenants that are always busy get their shares. */
export async function divided(
  scene: Scene,
  wishes: readonly Wish[],
  { aims = wishes.map(({ sharePercent }) => sharePercent), points = POINTS } = {},
): Promise<void> {
  const name =
    `${wishes.map(({ sharePercent }) => sharePercent).join(':')} ` +
    `${wishes[0]?.policy ?? 'POLICY_BURST'}`;
  const times = await undisturbedTimesOf(scene, wishes, name);
  if (times === undefined) return;
  const sum = charged(times);
  const got = times.map((time) => (charged([time]) / sum) * 100);
  console.log(
    `${name}: ${got.map((percent) => percent.toFixed(1)).join(':')} of ${(sum / 1e9).toFixed(2)} s`,
  );
  const problems = got.flatMap((percent, i) => {
    const aim = aims[i] as number;
    return Math.abs(percent - aim) <= points ? [] : [`${percent.toFixed(1)} % instead of ${aim}`];
  });
  scene.tally.judge(name, problems);
}

/** Burst shares are weights: unreserved time is divided, too. */
async function weighed(scene: Scene): Promise<void> {
  await divided(scene, [{ sharePercent: 10 }, { sharePercent: 30 }], { aims: [25, 75] });
}

/** A fixed share is a limit, even for a lone tenant: earned time plus savings. */
async function limited(scene: Scene): Promise<void> {
  const begin = performance.now();
  const times = await timesOf(scene, [{ sharePercent: 20, policy: 'POLICY_FIXED' }], LOOK_NS / 4);
  const passed = (performance.now() - begin) * 1e6;
  const most = 0.2 * (passed + KEPT_NS);
  scene.tally.judge(
    '20 fixed, alone',
    charged(times) <= most ? [] : [`it got ${charged(times)} of ${passed} ns`],
  );
}

/** A higher priority goes first; the lower one gets the rest. */
async function outranked(scene: Scene): Promise<void> {
  const busy = 'a higher priority that is always busy';
  const wishes = [
    { sharePercent: 10, priority: 10 },
    { sharePercent: 90, priority: 0 },
  ];
  const greedy = await undisturbedTimesOf(scene, wishes, busy);
  if (greedy !== undefined) {
    const part = (charged(greedy.slice(0, 1)) / charged(greedy)) * 100;
    console.log(`10:90, the first of higher priority: ${part.toFixed(1)} %`);
    scene.tally.judge(busy, part >= 100 - POINTS ? [] : [`it got ${part.toFixed(1)} %`]);
  }
  const modest = await timesOf(scene, [
    { sharePercent: 10, priority: 10, load: 'request' },
    { sharePercent: 90, priority: 0 },
  ]);
  const [first, second] = modest as [TimeUseMessage, TimeUseMessage];
  console.log(`requests beside a lower priority: ${JSON.stringify(modest)}`);
  scene.tally.judge(
    'a lower priority beside requests',
    second.windows > 0 && second.granted > 0 ? [] : ['it got nothing'],
  );
  const [short, long] = [first, second].map(
    ({ waited, windows }) => waited / Math.max(1, windows),
  ) as [number, number];
  scene.tally.judge(
    'requests of higher priority',
    short < long ? [] : [`they waited ${short} ns a window, the lower one ${long}`],
  );
}

/**
 * Large copies need no window, whatever the size of the last piece: 16 KiB would be a small copy.
 */
async function copying(scene: Scene): Promise<void> {
  const [, time] = (await timesOf(scene, [
    { sharePercent: 50 },
    { sharePercent: 50, load: 'copy', length: 8 * MIB + 16 * 1024 },
  ])) as [TimeUseMessage, TimeUseMessage];
  console.log(`large copies beside a busy tenant: ${JSON.stringify(time)}`);
  const problems =
    time.waited === 0 && time.windows === 0
      ? []
      : [`it stood at the gate: ${JSON.stringify(time)}`];
  scene.tally.judge('large copies beside a busy tenant', problems);
}

/** The gate of a lone tenant is never closed. */
async function alone(scene: Scene): Promise<void> {
  const [time] = (await timesOf(scene, [{ sharePercent: 10 }], LOOK_NS / 2)) as [TimeUseMessage];
  scene.tally.judge(
    'a lone tenant',
    time.windows === 0 && time.waited === 0 ? [] : [`it stood in windows: ${JSON.stringify(time)}`],
  );
}

/**
 * The same on a quiet machine; undefined, reported as skipped, if it never was quiet. A tenant
 * without processors neither yields in time nor asks for its turn, so its share says nothing about
 * the arbiter.
 */
async function undisturbedTimesOf(
  scene: Scene,
  wishes: readonly Wish[],
  name: string,
): Promise<TimeUseMessage[] | undefined> {
  do {
    const begin = performance.now();
    const { times, stolen } = await look(scene, wishes);
    if (stolen <= MOST_STOLEN) return times;
    patienceLeftMs -= performance.now() - begin;
  } while (patienceLeftMs > 0);
  scene.tally.skip(name, "other guests of this machine's host took its processors away");
  return undefined;
}

/** Time granted while all of them worked, until it was enough. */
async function timesOf(
  scene: Scene,
  wishes: readonly Wish[],
  enough?: number,
): Promise<TimeUseMessage[]> {
  return (await look(scene, wishes, enough)).times;
}

/** @returns also the share of processor time that the host gave to others meanwhile */
async function look(
  scene: Scene,
  wishes: readonly Wish[],
  enough = LOOK_NS,
): Promise<{ times: TimeUseMessage[]; stolen: number }> {
  const { node, tally } = scene;
  const allocations: AllocationMessage[] = [];
  for (const { load: _, length: __, ...wish } of wishes)
    allocations.push(await node.create({ memoryBytes: 64 * MIB, ...wish }));
  const tenants = allocations.map((allocation, i) =>
    startTenant(scene, allocation, wishes[i]?.load ?? 'saturate', wishes[i]?.length ?? KERNEL_MS),
  );
  tally.judge(
    'a busy tenant',
    (await Promise.all(tenants.map((tenant) => tenant.goesOn()))).flat(),
  );
  // Until the gates have closed, earlier work may still be charged to its owner.
  await pause(300);
  const stolenSince = watchStolen();
  const before = await timesNow(scene, allocations);
  let times = difference(before, before);
  for (
    const end = performance.now() + PATIENCE_MS;
    charged(times) < enough && performance.now() < end;
  ) {
    await pause(50);
    times = difference(before, await timesNow(scene, allocations));
  }
  const stolen = stolenSince();
  const stopped = await Promise.all(tenants.map((tenant) => tenant.stop()));
  tally.judge('the end of a busy tenant', stopped.flat());
  for (const allocation of allocations) {
    await node.until(allocation, (now) => now.sessions.length === 0);
    await node.delete(allocation);
  }
  return { times, stolen };
}

async function timesNow(
  { node }: Scene,
  allocations: readonly AllocationMessage[],
): Promise<TimeUseMessage[]> {
  const list = await node.list();
  return allocations.map(
    ({ id }) => (list.find((allocation) => allocation.id === id) as AllocationMessage).time,
  );
}

function difference(
  before: readonly TimeUseMessage[],
  now: readonly TimeUseMessage[],
): TimeUseMessage[] {
  return now.map((time, i) => {
    const then = before[i] as TimeUseMessage;
    return {
      granted: time.granted - then.granted,
      waited: time.waited - then.waited,
      overrun: time.overrun - then.overrun,
      windows: time.windows - then.windows,
    };
  });
}

/** Charged time: from the start of each window until its work has ended. */
function charged(times: readonly TimeUseMessage[]): number {
  return times.reduce((sum, time) => sum + time.granted + time.overrun, 0);
}
