import { GIB, SECOND, Simulation, type Workload } from './testing/simulation.js';

const HOUR = 3600 * SECOND;
const MACHINE = { room: 140 * GIB, hostMemory: 1000 * GIB };

function busy(id: string, gib: number, weight = 1, priority = 0): Workload {
  const terms = { quota: gib * GIB, weight, priority };
  return { id, terms, work: () => Number.POSITIVE_INFINITY };
}

function played(workloads: readonly Workload[], hours: number): Simulation {
  const simulation = new Simulation(MACHINE, workloads);
  simulation.run(hours * HOUR);
  return simulation;
}

/** Percent of the computed time that each tenant had. */
const parts = ({ tenants, computed }: Simulation) =>
  tenants.map(({ done }) => (100 * done) / computed);

const PERCENT_60 = 84;
const PERCENT_50 = 70;

test.each<[string, number, number[], number[]]>([
  ['of 60 % take equal turns', PERCENT_60, [1, 1, 1, 1], [25, 25, 25, 25]],
  ['of 60 % share by weight', PERCENT_60, [10, 20, 30, 40], [10, 20, 30, 40]],
  ['of 50 %, two at a time', PERCENT_50, [1, 1, 1, 1], [25, 25, 25, 25]],
  ['of 50 %, two at a time, by weight', PERCENT_50, [10, 20, 30, 40], [10, 20, 30, 40]],
])('four tenants that always compute, %s', (_, gib, weights, expected) => {
  const simulation = played(
    weights.map((weight, index) => busy(`${index}`, gib, weight)),
    1,
  );
  for (const [index, part] of parts(simulation).entries())
    expect(Math.abs(part - (expected[index] ?? 0))).toBeLessThan(3);
});

test('a large tenant gets its part beside two small ones', () => {
  const [large = 0] = parts(played([busy('large', 130), busy('b', 65), busy('c', 65)], 1));
  expect(Math.abs(large - 100 / 3)).toBeLessThan(3);
});

test('lower priorities keep half of their shares', () => {
  const simulation = played([busy('high', 84, 1, 5), busy('b', 84), busy('c', 84)], 1);
  for (const [index, part] of parts(simulation).entries())
    expect(Math.abs(part - (index === 0 ? 66.7 : 16.7))).toBeLessThan(3);
});

test('an idle tenant saves up no time', () => {
  const simulation = new Simulation(MACHINE, [busy('a', 100), busy('b', 100)]);
  const late = simulation.of('b');
  late.pausesUntil = HOUR;
  simulation.run(HOUR);
  simulation.run(HOUR);
  expect(Math.abs(late.done / simulation.of('a').done - 1 / 3)).toBeLessThan(0.03);
});

test('with two tenants on the GPU, one computes while the other is exchanged', () => {
  const simulation = played(
    ['a', 'b', 'c', 'd'].map((id) => busy(id, PERCENT_50)),
    1,
  );
  expect(simulation.computed / simulation.wanted).toBeGreaterThan(0.99);
});

test('two tenants of 100 GiB that compute in turns lose little time', () => {
  const turns = (id: string): Workload => ({ ...busy(id, 100), work: () => 20 * SECOND });
  const { computed, wanted, residency, now } = played([turns('a'), turns('b')], 1);
  const [total, moving] = [computed / wanted, residency.exchangingRatio(now)];
  // The least total is 0.93: each stay is 14 times the exchange.
  expect({ total, moving }).toEqual({
    total: expect.closeTo(0.9, 1),
    moving: expect.closeTo(0.1, 1),
  });
});

test('two tenants of 100 GiB that compute 20 s in strict turns', () => {
  const rounds = (id: string) => simulation.of(id).rounds;
  const turns = (id: string, ready: () => boolean): Workload => ({
    ...{ ...busy(id, 100), work: () => 20 * SECOND },
    ready,
  });
  const simulation: Simulation = new Simulation({ ...MACHINE, look: SECOND / 10 }, [
    turns('a', () => rounds('a') === rounds('b')),
    turns('b', () => rounds('a') > rounds('b')),
  ]);
  simulation.run(HOUR);
  const { computed, wanted, lost } = simulation;
  const part = (milliseconds: number) => Math.round((100 * milliseconds) / wanted);
  expect({ computed: part(computed), nothing: part(lost.nothing) }).toEqual({
    computed: 94,
    nothing: 0,
  });
  expect({ out: part(lost.out), in: part(lost.in), both: part(lost.both) }).toEqual({
    out: 0,
    in: 0,
    both: 6,
  });
});
