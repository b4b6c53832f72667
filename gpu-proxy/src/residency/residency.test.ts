import { Residency } from './residency.js';
import type { Observation } from './tenant.js';
import { GIB, SECOND } from './testing/simulation.js';

const RATE = 50e6;
const MANY = 1000 * GIB;

interface Given extends Partial<Observation> {
  readonly gib: number;
  readonly weight?: number;
  readonly priority?: number;
}

/** A policy with tenants that are on a GPU of 100 GiB, and what they were seen to do. */
function residency(tenants: Readonly<Record<string, Given>>, hostMemory = MANY): Residency {
  const policy = new Residency({ room: 100 * GIB, hostMemory, guarantee: 0.5 });
  for (const [id, { gib, weight = 1, priority = 0 }] of Object.entries(tenants))
    policy.put(id, { quota: gib * GIB, weight, priority }, 0, 'resident');
  for (const [id, given] of Object.entries(tenants)) see(policy, id, given, 0);
  return policy;
}

function see(policy: Residency, id: string, { gib, ...seen }: Given, now: number): void {
  const usual = { bytes: gib * GIB, out: 0, waits: false, usedAt: 0, suspended: false };
  policy.observe(id, { ...usual, ...seen }, now);
}

/** A new tenant whose first call waits for its room. */
function come(policy: Residency, id: string, gib: number, now: number, priority = 0): void {
  policy.put(id, { quota: gib * GIB, weight: 1, priority }, now);
  see(policy, id, { gib, bytes: 0, waits: true }, now);
}

const moves = (policy: Residency, now: number) => {
  const { leave, enter } = policy.decide(now);
  return { leave: leave?.id, enter: enter?.id };
};
const NONE = { leave: undefined, enter: undefined };
/** The end of a move after which so many GiB are out. */
const moved = (out: number, gib = 0) => ({ out: out * GIB, duration: (gib * GIB) / RATE });
const leftAfter = (policy: Residency, id: string, gib: number, now: number) =>
  policy.left(id, moved(gib, gib), now);

test('a tenant enters at once where there is room', () => {
  const policy = residency({ a: { gib: 60, usedAt: 100 * SECOND } });
  come(policy, 'b', 40, 100 * SECOND);
  expect(moves(policy, 100 * SECOND)).toEqual({ leave: undefined, enter: 'b' });
  expect(policy.stateOf('b')).toBe('entering');
});

test('nobody leaves while all that want fit, however long the others are idle', () => {
  const policy = residency({ a: { gib: 60 }, b: { gib: 40 } });
  expect(moves(policy, 3600 * SECOND)).toEqual(NONE);
});

test.each<[string, Record<string, Given>, number, string]>([
  [
    'the longest idle one',
    { a: { gib: 30, usedAt: 9 }, b: { gib: 30, usedAt: 3 }, c: { gib: 40, usedAt: 7 } },
    30,
    'b',
  ],
  ['of equally idle ones the largest', { a: { gib: 40 }, b: { gib: 60 } }, 30, 'b'],
  [
    'an idle one before one that computes',
    { a: { gib: 50, usedAt: 100 * SECOND }, b: { gib: 50, usedAt: 60 * SECOND } },
    30,
    'b',
  ],
  [
    'no more than needed: the longest idle one alone would not do',
    { a: { gib: 10, usedAt: 1 }, b: { gib: 60, usedAt: 2 }, c: { gib: 30, usedAt: 3 } },
    60,
    'b',
  ],
  [
    'a suspended one before all others',
    { a: { gib: 50, usedAt: 1 }, b: { gib: 50, usedAt: 9, suspended: true } },
    30,
    'b',
  ],
])('who leaves for another: %s', (_, tenants, gib, expected) => {
  const policy = residency(tenants);
  come(policy, 'new', gib, 100 * SECOND);
  expect(moves(policy, 100 * SECOND)).toEqual({ leave: expected, enter: undefined });
});

test('one leaves after the other, and the next one enters meanwhile', () => {
  const policy = residency({ a: { gib: 50, usedAt: 1 }, b: { gib: 50, usedAt: 2 } });
  come(policy, 'c', 50, 100 * SECOND);
  come(policy, 'd', 50, 100 * SECOND);
  expect(moves(policy, 100 * SECOND)).toEqual({ leave: 'a', enter: undefined });
  leftAfter(policy, 'a', 50, 101 * SECOND);
  expect(moves(policy, 101 * SECOND)).toEqual({ leave: 'b', enter: 'c' });
});

test('the last one that computes stays until the entering one is there', () => {
  const policy = residency({ a: { gib: 50 }, b: { gib: 50 } });
  const busy = (now: number, ids = ['a', 'b']) => {
    for (const id of ids) see(policy, id, { gib: 50, usedAt: now }, now);
  };
  busy(100 * SECOND);
  come(policy, 'c', 50, 100 * SECOND);
  come(policy, 'd', 50, 100 * SECOND);
  busy(200 * SECOND);
  expect(moves(policy, 200 * SECOND)).toEqual({ leave: 'a', enter: undefined });
  leftAfter(policy, 'a', 50, 201 * SECOND);
  busy(201 * SECOND, ['b']);
  expect(moves(policy, 201 * SECOND)).toEqual({ leave: undefined, enter: 'c' });
  policy.entered('c', moved(0), 202 * SECOND);
  expect(moves(policy, 202 * SECOND)).toEqual({ leave: 'b', enter: undefined });
});

/** Has memory of `a` leave for `b`, a tenant of 60 GiB, in one move. */
function exchange(policy: Residency, now: number, duration = (60 * GIB) / RATE): void {
  expect(moves(policy, now)).toEqual({ leave: 'a', enter: undefined });
  policy.left('a', { out: 60 * GIB, duration }, now);
  see(policy, 'a', { gib: 100, out: 60 * GIB }, now);
  expect(moves(policy, now)).toEqual({ leave: undefined, enter: 'b' });
  policy.entered('b', moved(0), now);
  see(policy, 'b', { gib: 60, usedAt: now }, now);
}

test('a tenant stays 14 times as long as its memory moved, unless it becomes idle', () => {
  const policy = residency({ a: { gib: 100 } });
  come(policy, 'b', 60, 100 * SECOND);
  exchange(policy, 100 * SECOND);
  const stay = (14 * 60 * GIB) / RATE;
  expect(policy.stayOf('b')).toBeCloseTo(stay);
  see(policy, 'a', { gib: 100, out: 60 * GIB, waits: true }, 101 * SECOND);
  const end = 100 * SECOND + stay;
  see(policy, 'b', { gib: 60, usedAt: end - 1 }, end - 1);
  expect(moves(policy, end - 1)).toEqual(NONE);
  expect(moves(policy, end)).toEqual({ leave: 'b', enter: undefined });
});

test('a tenant counts as idle once it has paused as long as its exchange took', () => {
  const policy = residency({ a: { gib: 100 } });
  come(policy, 'b', 60, 100 * SECOND);
  exchange(policy, 100 * SECOND);
  see(policy, 'a', { gib: 100, out: 60 * GIB, waits: true }, 101 * SECOND);
  const idle = 100 * SECOND + (60 * GIB) / RATE;
  expect(moves(policy, idle - 1)).toEqual(NONE);
  expect(moves(policy, idle)).toEqual({ leave: 'b', enter: undefined });
});

test('no more leaves than is needed, in steps of 4 GiB, and enters beside', () => {
  const policy = residency({ a: { gib: 100 } });
  policy.put('b', { quota: 10 * GIB, weight: 1, priority: 0 }, 0);
  see(policy, 'b', { gib: 10, out: 10 * GIB, waits: true }, 100 * SECOND);
  const out = { a: 0, b: 10 };
  const steps: string[] = [];
  for (let now = 100 * SECOND; policy.stateOf('b') !== 'resident'; now++) {
    const { leave, enter } = policy.decide(now);
    const bytes = ({ bytes }: { bytes: number }) => bytes / GIB;
    steps.push(`${leave ? bytes(leave) : 0} out, ${enter ? bytes(enter) : 0} in`);
    if (leave) out.a += bytes(leave);
    if (enter) out.b = Math.max(0, out.b - bytes(enter));
    if (leave) policy.left('a', moved(out.a), now);
    if (enter) policy.entered('b', moved(out.b), now);
  }
  expect(steps).toEqual(['4 out, 0 in', '4 out, 4 in', '2 out, 4 in', '0 out, Infinity in']);
});

test('pieces that are larger than a step enter in larger steps', () => {
  const policy = residency({ a: { gib: 100 } });
  policy.put('b', { quota: 100 * GIB, weight: 1, priority: 0 }, 0);
  see(policy, 'b', { gib: 100, out: 100 * GIB, waits: true }, 100 * SECOND);
  moves(policy, 100 * SECOND);
  leftAfter(policy, 'a', 50, 101 * SECOND);
  for (const gib of [4, 8, 16, 32]) {
    expect(policy.decide(101 * SECOND).enter).toEqual({ id: 'b', bytes: gib * GIB });
    policy.entered('b', moved(100), 101 * SECOND);
  }
  expect(policy.decide(101 * SECOND).enter).toBeUndefined();
});

test('a tenant that moves slowly changes no stay of others', () => {
  const policy = residency({ a: { gib: 100 } });
  come(policy, 'b', 60, 100 * SECOND);
  exchange(policy, 100 * SECOND, 60 * SECOND);
  expect(policy.stayOf('b')).toBeCloseTo((14 * 60 * GIB) / RATE);
});

test('of waiting tenants with equal time, the higher priority enters first', () => {
  const policy = residency({ a: { gib: 100 } });
  come(policy, 'low', 60, 99 * SECOND);
  come(policy, 'high', 60, 100 * SECOND, 1);
  expect(moves(policy, 100 * SECOND).leave).toBe('a');
  leftAfter(policy, 'a', 100, 102 * SECOND);
  expect(moves(policy, 102 * SECOND).enter).toBe('high');
});

test('a suspended tenant does not enter before it is resumed', () => {
  const policy = residency({});
  policy.put('a', { quota: GIB, weight: 1, priority: 0 }, 0);
  see(policy, 'a', { gib: 1, waits: true, suspended: true }, SECOND);
  expect(moves(policy, SECOND)).toEqual(NONE);
  see(policy, 'a', { gib: 1, waits: true }, 2 * SECOND);
  expect(moves(policy, 2 * SECOND).enter).toBe('a');
});

test('a tenant that cannot leave now is asked again later, and another one leaves', () => {
  const policy = residency({ a: { gib: 50, usedAt: 1 }, b: { gib: 50, usedAt: 2 } });
  come(policy, 'c', 50, 100 * SECOND);
  expect(moves(policy, 100 * SECOND).leave).toBe('a');
  policy.refused('a', 'its work does not end', 101 * SECOND);
  expect(moves(policy, 101 * SECOND).leave).toBe('b');
  policy.refused('b', 'its work does not end', 102 * SECOND);
  expect(moves(policy, 106 * SECOND - 1)).toEqual(NONE);
  expect(moves(policy, 106 * SECOND).leave).toBe('a');
  policy.refused('a', 'its work does not end', 107 * SECOND);
  expect(moves(policy, 107 * SECOND).leave).toBe('b');
  policy.refused('b', 'its work does not end', 108 * SECOND);
  expect(moves(policy, 117 * SECOND - 1)).toEqual(NONE);
  expect(moves(policy, 117 * SECOND).leave).toBe('a');
});

test('a tenant that waits for one that cannot leave is told which', () => {
  const policy = residency({ a: { gib: 60 }, b: { gib: 30 } });
  come(policy, 'c', 50, 100 * SECOND);
  expect(moves(policy, 100 * SECOND).leave).toBe('a');
  policy.refused('a', 'it has managed memory', 100 * SECOND);
  const { stuck, ...others } = policy.decide(105 * SECOND - 1);
  expect(others).toMatchObject(NONE);
  expect([...stuck]).toEqual([
    [
      'c',
      'It needs 50 GiB of GPU memory, and at most 40 GiB of 100 GiB can become free: ' +
        'a keeps 60 GiB (it has managed memory).',
    ],
  ]);
  expect(moves(policy, 105 * SECOND).leave).toBe('a');
});

test('a tenant does not wait behind one that is stuck', () => {
  const policy = residency({ a: { gib: 60 } });
  come(policy, 'big', 50, 100 * SECOND);
  moves(policy, 100 * SECOND);
  policy.refused('a', 'it has managed memory', 100 * SECOND);
  come(policy, 'small', 40, 101 * SECOND);
  expect(moves(policy, 101 * SECOND)).toEqual({ leave: undefined, enter: 'small' });
});

test('a tenant that finds no room waits before it tries again, and the next one enters', () => {
  const policy = residency({});
  come(policy, 'a', 60, SECOND);
  come(policy, 'b', 60, 2 * SECOND);
  expect(moves(policy, 2 * SECOND).enter).toBe('a');
  policy.notEntered('a', 3 * SECOND);
  expect(moves(policy, 3 * SECOND).enter).toBe('b');
  policy.notEntered('b', 3 * SECOND);
  expect(moves(policy, 4 * SECOND - 1)).toEqual(NONE);
  expect(moves(policy, 4 * SECOND).enter).toBe('a');
  policy.notEntered('a', 5 * SECOND);
  expect(moves(policy, 5 * SECOND).enter).toBe('b');
  policy.entered('b', moved(0), 6 * SECOND);
  policy.remove('b', 6 * SECOND);
  expect(moves(policy, 7 * SECOND - 1)).toEqual(NONE);
  expect(moves(policy, 7 * SECOND).enter).toBe('a');
});

test('what stays on the GPU takes room, and a tenant that frees too little is not chosen', () => {
  const policy = residency({ a: { gib: 60, usedAt: 1 }, b: { gib: 40, usedAt: 2 } });
  come(policy, 'c', 40, 100 * SECOND);
  expect(moves(policy, 100 * SECOND).leave).toBe('a');
  leftAfter(policy, 'a', 10, 101 * SECOND);
  expect(moves(policy, 101 * SECOND).leave).toBe('a');
  leftAfter(policy, 'a', 10, 101 * SECOND);
  expect(moves(policy, 101 * SECOND).leave).toBe('b');
  leftAfter(policy, 'b', 40, 102 * SECOND);
  expect(moves(policy, 102 * SECOND).enter).toBe('c');
  come(policy, 'd', 60, 103 * SECOND);
  expect(policy.decide(103 * SECOND).stuck.get('d')).toBe(
    'It needs 60 GiB of GPU memory, and at most 50 GiB of 100 GiB can become free: ' +
      'a keeps 50 GiB (memory that cannot leave).',
  );
});

test('nobody leaves without host memory for it, and the waiting tenant is told', () => {
  const policy = residency({ a: { gib: 60, usedAt: 1 }, b: { gib: 40 } }, 50 * GIB);
  come(policy, 'c', 30, 100 * SECOND);
  expect(moves(policy, 100 * SECOND).leave).toBe('b');
  leftAfter(policy, 'b', 40, 101 * SECOND);
  expect(moves(policy, 101 * SECOND).enter).toBe('c');
  come(policy, 'd', 40, 102 * SECOND);
  policy.entered('c', moved(0), 103 * SECOND);
  see(policy, 'c', { gib: 30 }, 103 * SECOND);
  expect(policy.decide(103 * SECOND).stuck.get('d')).toBe(
    'It needs 40 GiB of GPU memory, and not so much memory of other allocations can leave: ' +
      'only 10 GiB of 50 GiB host memory are left.',
  );
});

test('a move that ends after its tenant was removed changes nothing', () => {
  const policy = residency({ a: { gib: 100 } });
  come(policy, 'b', 100, 100 * SECOND);
  expect(moves(policy, 100 * SECOND).leave).toBe('a');
  policy.remove('a', 101 * SECOND);
  leftAfter(policy, 'a', 100, 102 * SECOND);
  expect(policy.stateOf('a')).toBeUndefined();
  expect(moves(policy, 102 * SECOND).enter).toBe('b');
});

test('a look in the middle of a move does not take its rest for memory that cannot leave', () => {
  const policy = residency({ a: { gib: 60 } });
  come(policy, 'b', 60, 100 * SECOND);
  expect(policy.decide(100 * SECOND).leave).toEqual({ id: 'a', bytes: 4 * GIB });
  see(policy, 'a', { gib: 60, out: 3 * GIB }, 101 * SECOND);
  policy.left('a', moved(4, 4), 102 * SECOND);
  come(policy, 'c', 100, 103 * SECOND);
  expect(policy.decide(103 * SECOND).stuck).toEqual(new Map());
});

test('memory that cannot leave is forgotten once a program has freed it', () => {
  const policy = residency({ a: { gib: 60 } });
  come(policy, 'b', 60, 100 * SECOND);
  policy.decide(100 * SECOND);
  policy.left('a', moved(2, 2), 102 * SECOND);
  come(policy, 'c', 100, 103 * SECOND);
  expect([...policy.decide(103 * SECOND).stuck.keys()]).toContain('c');
  see(policy, 'a', { gib: 60, bytes: 0 }, 104 * SECOND);
  expect(policy.decide(104 * SECOND).stuck).toEqual(new Map());
});
