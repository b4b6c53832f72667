import { randomNumbers } from '@nvidia-virtual/service/testing/random';
import { GIB, type Played, SECOND, Simulation, type Workload } from './testing/simulation.js';

const ROOM = 140 * GIB;
const HOST = 600 * GIB;
const RATE = 50e6;
const HOUR = 3600 * SECOND;

const sum = (tenants: readonly Played[], amount: (tenant: Played) => number) =>
  tenants.reduce((total, tenant) => total + amount(tenant), 0);
const quotaOf = ({ workload }: Played) => workload.terms.quota;

interface Kind {
  /** Some leaves are refused, some entries fail, and work takes a while to end. */
  readonly failures: boolean;
  readonly priorities: boolean;
}

function workloads(random: () => number, { failures, priorities }: Kind): Workload[] {
  const count = 2 + Math.floor(random() * 7);
  return Array.from({ length: count }, (_, index) => {
    const quota = Math.ceil(ROOM * (0.05 + 0.95 * random()));
    const weight = 1 + Math.floor(random() * 10);
    const [busy, full, stubborn] = [random() < 0.3, random() < 0.5, random() < 0.1];
    const [work, pause] = [random() * 40 * SECOND, random() * 40 * SECOND];
    return {
      id: `tenant-${index}`,
      terms: { quota, weight, priority: priorities ? Math.floor(random() * 3) : 0 },
      bytes: () => (full ? quota : Math.floor(quota * random())),
      work: () => (busy ? Number.POSITIVE_INFINITY : random() * work),
      pause: () => random() * pause,
      remains: failures && random() < 0.2 ? Math.floor(random() * GIB) : 0,
      refusal: () =>
        failures && (stubborn || random() < 0.05) ? 'it does not want to' : undefined,
      entryFails: () => failures && random() < 0.05,
    };
  });
}

/** Notes at each decision what does not hold of the simulated machine itself. */
function watch(simulation: Simulation): ReadonlySet<string> {
  const { tenants } = simulation;
  const broken = new Set<string>();
  simulation.checkRoom = () => {
    if (sum(tenants, takenBy) > ROOM) broken.add('more on the GPU than it has');
    if (sum(tenants, hostedBy) > HOST) broken.add('more out than the host has');
  };
  simulation.check = (leave) => {
    for (const one of brokenByLeave(simulation, leave)) broken.add(one);
  };
  return broken;
}

/** Room of the GPU that it may use. */
function takenBy({ workload, state, runs, bytes, out, move }: Played): number {
  const { quota } = workload.terms;
  if (state === 'resident' || move?.whole === true) return quota;
  if (state === 'leaving') return runs ? quota : bytes - out;
  return bytes - out + (move?.bytes ?? 0);
}

function hostedBy({ state, out, move }: Played): number {
  return state === 'leaving' ? out + (move?.bytes ?? 0) : out;
}

function brokenByLeave({ tenants, residency, now }: Simulation, leave: Played): string[] {
  const waiting = tenants.filter(({ state, left }) => state !== 'resident' && left > 0);
  const here = tenants.filter(({ state }) => state === 'resident');
  const wanting = new Set([...waiting, ...here, leave]);
  const remains = sum(tenants, ({ workload }) => workload.remains ?? 0);
  const fits = sum([...wanting], quotaOf) <= ROOM - remains;
  const stays = now - leave.enteredAt < residency.stayOf(leave.workload.id) - 1;
  return [
    ...(waiting.length === 0 || fits ? ['one leaves although all fit'] : []),
    ...(stays && leave.left > 0 ? ['one that computes leaves before its time'] : []),
  ];
}

/** The longest that a tenant may wait: README.md. */
function longestWait(tenant: Played, { tenants }: Simulation, guarantee: number): number {
  const exchange = (one: Played) => (2 * quotaOf(one)) / RATE;
  const stay = (one: Played) => Math.max(2 * SECOND, 10 * exchange(one));
  const weight = (one: Played) => one.workload.terms.weight;
  const others = tenants.filter((one) => one !== tenant);
  const turns = sum(others, (one) => 2 * (stay(one) + exchange(one)));
  const share = (weight(tenant) * guarantee) / sum(tenants, weight);
  return turns + stay(tenant) * (1 / share - 1);
}

const seeds = Array.from({ length: 25 }, (_, index) => index + 1);

test.each(seeds)('seed %i: an hour of random tenants', (seed) => {
  const priorities = seed % 3 === 0;
  const random = randomNumbers(seed);
  const simulation = new Simulation(
    { room: ROOM, hostMemory: HOST },
    workloads(random, { failures: false, priorities }),
  );
  const broken = watch(simulation);
  simulation.run(HOUR);
  expect([...broken, ...simulation.stuck]).toEqual([]);
  for (const tenant of simulation.tenants) {
    const { longestWait: ended, waitsSince = simulation.now } = tenant;
    const waited = Math.max(ended, simulation.now - waitsSince);
    expect(waited).toBeLessThan(longestWait(tenant, simulation, priorities ? 0.5 : 1));
  }
});

test.each(seeds)('seed %i: an hour of random tenants, refusals and failures', (seed) => {
  const random = randomNumbers(1000 + seed);
  const simulation = new Simulation(
    { room: ROOM, hostMemory: HOST, drain: () => random() * 200 },
    workloads(random, { failures: true, priorities: seed % 3 === 0 }),
  );
  const broken = watch(simulation);
  simulation.run(HOUR);
  expect([...broken]).toEqual([]);
  const { stuck, tenants } = simulation;
  const never = tenants.filter(({ entries, workload: { id } }) => entries === 0 && !stuck.has(id));
  expect(never.map(({ workload }) => workload.id)).toEqual([]);
});
