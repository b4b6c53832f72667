import type {
  AllocationMessage,
  CreateAllocationRequest,
  TimeUseMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { lookUntil } from '../processes.js';
import { type Case, type Scene, startTenant } from './scene.js';
import type { Load } from './tenant.js';

const MIB = 2 ** 20;
/** Nanoseconds of charged time that are compared. */
const LOOK_NS = 2e9;
const POINTS = 2;
/** The maximum that a fixed share saves up: native/arbiter/README.md. */
const KEPT_NS = 100e6;
const KERNEL_MS = 1;
/** Windows after which all contending gates are closed in turn. */
const SETTLED_WINDOWS = 3;

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

/**
 * Every tenant gets its share of the GPU while it wants the GPU, and a fixed share is never
 * exceeded. All figures are the arbiter's, so a tenant that gets no processor time, and therefore
 * asks for no GPU time, is no failure: a busy machine only makes the comparison weaker.
 */
export async function divided(
  scene: Scene,
  wishes: readonly Wish[],
  {
    aims = wishes.map(({ sharePercent }) => sharePercent),
    points = POINTS,
    name = `${wishes.map(({ sharePercent }) => sharePercent).join(':')} ` +
      `${wishes[0]?.policy ?? 'POLICY_BURST'}`,
  } = {},
): Promise<void> {
  const seen = await look(scene, wishes);
  const sum = charged(seen.times);
  const got = seen.times.map((time) => (charged([time]) / sum) * 100);
  const wanted = seen.times.map((time) => (wantedNs(time) / seen.passedNs) * 100);
  const list = (percents: number[], digits: number) =>
    percents.map((percent) => percent.toFixed(digits)).join(':');
  console.log(
    `${name}: ${list(got, 1)} of ${(sum / 1e9).toFixed(2)} s, ` +
      `wanted for ${list(wanted, 0)} % of the time`,
  );
  const problems = seen.times.flatMap((time, i) =>
    shortfall(seen, time, aims[i] as number, points),
  );
  scene.tally.judge(name, [...problems, ...excesses(seen, wishes)]);
}

/** A tenant has no claim to the time in which it did not want the GPU. */
function shortfall(
  { times, passedNs }: Look,
  time: TimeUseMessage,
  aim: number,
  points: number,
): string[] {
  const sum = charged(times);
  const contended = sum - Math.max(0, passedNs - wantedNs(time));
  const least = (contended * aim - sum * points) / 100;
  const had = charged([time]);
  return had >= least ? [] : [`it got ${had} ns and has a claim to ${least}`];
}

/** A fixed share earns time at its rate, and saves little. Overrun is paid back later. */
function excesses({ totals, livedNs }: Look, wishes: readonly Wish[]): string[] {
  return wishes.flatMap(({ sharePercent, policy }, i) => {
    const { granted } = totals[i] as TimeUseMessage;
    const most = (sharePercent / 100) * (livedNs + KEPT_NS);
    return policy !== 'POLICY_FIXED' || granted <= most
      ? []
      : [`a fixed share of ${sharePercent} % got ${granted} of ${livedNs} ns`];
  });
}

/** Burst shares are weights: unreserved time is divided, too. */
async function weighed(scene: Scene): Promise<void> {
  await divided(scene, [{ sharePercent: 10 }, { sharePercent: 30 }], { aims: [25, 75] });
}

/** A fixed share is a limit, even for a lone tenant: earned time plus savings. */
async function limited(scene: Scene): Promise<void> {
  const wishes: Wish[] = [{ sharePercent: 20, policy: 'POLICY_FIXED' }];
  scene.tally.judge('20 fixed, alone', excesses(await look(scene, wishes, LOOK_NS / 4), wishes));
}

/** A higher priority goes first; the lower one keeps half of its share, and gets the rest. */
async function outranked(scene: Scene): Promise<void> {
  const wishes = [
    { sharePercent: 10, priority: 10 },
    { sharePercent: 90, priority: 0 },
  ];
  const name = '10:90, the first of higher priority';
  await divided(scene, wishes, { aims: [55, 45], name });
  const { times } = await look(scene, [
    { sharePercent: 10, priority: 10, load: 'request' },
    { sharePercent: 90, priority: 0 },
  ]);
  const second = times[1] as TimeUseMessage;
  console.log(`requests beside a lower priority: ${JSON.stringify(times)}`);
  scene.tally.judge(
    'a lower priority beside requests',
    second.windows > 0 && second.granted > 0 ? [] : ['it got nothing'],
  );
}

/**
 * Large copies need no window, whatever the size of the last piece: 16 KiB would be a small copy.
 */
async function copying(scene: Scene): Promise<void> {
  const { times } = await look(scene, [
    { sharePercent: 50 },
    { sharePercent: 50, load: 'copy', length: 8 * MIB + 16 * 1024 },
  ]);
  const time = times[1] as TimeUseMessage;
  console.log(`large copies beside a busy tenant: ${JSON.stringify(time)}`);
  const problems =
    time.waited === 0 && time.windows === 0
      ? []
      : [`it stood at the gate: ${JSON.stringify(time)}`];
  scene.tally.judge('large copies beside a busy tenant', problems);
}

/** The gate of a lone tenant is never closed. */
async function alone(scene: Scene): Promise<void> {
  const { times } = await look(scene, [{ sharePercent: 10 }], LOOK_NS / 2);
  const time = times[0] as TimeUseMessage;
  scene.tally.judge(
    'a lone tenant',
    time.windows === 0 && time.waited === 0 ? [] : [`it stood in windows: ${JSON.stringify(time)}`],
  );
}

interface Look {
  /** Figures between two readings, by the arbiter. */
  readonly times: readonly TimeUseMessage[];
  /** Calls of each program between them. */
  readonly calls: readonly number[];
  /** At most so much time is between the readings. */
  readonly passedNs: number;
  /** Figures since the allocations were created. */
  readonly totals: readonly TimeUseMessage[];
  readonly livedNs: number;
}

/** Lets all of them work until `enough` time was charged to them together. */
export async function look(scene: Scene, wishes: readonly Wish[], enough = LOOK_NS): Promise<Look> {
  const { node, tally } = scene;
  const created = performance.now();
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
  // Work behind gates that were open until the others started is charged to its owner.
  const contend = wishes.length > 1 && wishes.every(({ load }) => load !== 'copy');
  const taken = (time: TimeUseMessage) => !contend || time.windows >= SETTLED_WINDOWS;
  await timesUntil(scene, allocations, (times) => times.every(taken));

  const begin = performance.now();
  const before = await timesNow(scene, allocations);
  // Calls are counted within the time that is charged, however long an answer of the node takes.
  const callsNow = () => tenants.map(({ entry }) => entry.calls);
  const callsBefore = callsNow();
  let callsThen = callsBefore;
  const isEnough = (now: readonly TimeUseMessage[]) => charged(difference(before, now)) >= enough;
  const totals = await lookUntil(
    () => {
      callsThen = callsNow();
      return timesNow(scene, allocations);
    },
    isEnough,
    { everyMs: 50 },
  );
  const end = performance.now();
  const calls = callsThen.map((count, i) => count - (callsBefore[i] as number));
  const stopped = await Promise.all(tenants.map((tenant) => tenant.stop()));
  tally.judge('the end of a busy tenant', stopped.flat());
  for (const allocation of allocations) {
    await node.until(allocation, (now) => now.sessions.length === 0);
    await node.delete(allocation);
  }
  return {
    times: difference(before, totals),
    calls,
    passedNs: (end - begin) * 1e6,
    totals,
    livedNs: (end - created) * 1e6,
  };
}

/** Reads the figures until they fulfil the condition, and at least once. */
function timesUntil(
  scene: Scene,
  allocations: readonly AllocationMessage[],
  holds: (now: readonly TimeUseMessage[]) => boolean,
): Promise<TimeUseMessage[]> {
  return lookUntil(() => timesNow(scene, allocations), holds, { everyMs: 50 });
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
export function charged(times: readonly TimeUseMessage[]): number {
  return times.reduce((sum, time) => sum + time.granted + time.overrun, 0);
}

/** Time in which it had the GPU or waited for it. */
function wantedNs({ granted, waited }: TimeUseMessage): number {
  return granted + waited;
}
