import { ALLOCATION, nodeSnapshot, sessionRecord, sessionUse } from '../testing/node-snapshot.js';
import { type RoundTrips, type Totals, TotalsKeeper } from './totals.js';

const roundTrips = (count: number): RoundTrips => Array<number>(32).fill(count);
const keeper = () => new TotalsKeeper();

function see(totals: TotalsKeeper, uses: Readonly<Record<number, number>>): number {
  const sessions = Object.entries(uses).map(([number, count]) => ({
    record: sessionRecord(Number(number)),
    use: sessionUse(count),
  }));
  totals.observe(nodeSnapshot({ sessions }), ({ number }) => roundTrips(uses[number] ?? 0));
  return same(totals.totalsOf(ALLOCATION));
}

/** All counters of these tests are equal. */
function same({ launches, faults, bytesCopied, roundTrips: buckets }: Totals): number {
  const all = new Set([launches, faults, ...Object.values(bytesCopied), ...buckets]);
  expect(all.size).toBe(1);
  return launches;
}

test('totals include live and ended sessions', () => {
  const totals = keeper();
  expect(see(totals, { 1: 5, 2: 7 })).toBe(12);
  expect(see(totals, { 2: 8 })).toBe(13);
  expect(see(totals, { 2: 9, 3: 1 })).toBe(15);
  expect(see(totals, {})).toBe(15);
});

test('work of a session after the last snapshot counts as soon as its end is reported', () => {
  const totals = keeper();
  see(totals, { 1: 5 });
  totals.end(sessionRecord(1), sessionUse(9), roundTrips(9));
  expect(same(totals.totalsOf(ALLOCATION))).toBe(9);
  expect(see(totals, {})).toBe(9);
});

test('a session that was in no snapshot counts', () => {
  const totals = keeper();
  totals.end(sessionRecord(1), sessionUse(9), roundTrips(9));
  expect(see(totals, { 2: 1 })).toBe(10);
});

test('a snapshot from before its end does not count a session again', () => {
  const totals = keeper();
  totals.end(sessionRecord(1), sessionUse(9), roundTrips(9));
  expect(see(totals, { 1: 8 })).toBe(9);
  expect(see(totals, { 1: 9 })).toBe(9);
  expect(see(totals, {})).toBe(9);
});

test('decreasing figures of a worker are ignored', () => {
  const totals = keeper();
  see(totals, { 1: 5 });
  expect(see(totals, { 1: 3 })).toBe(5);
  totals.end(sessionRecord(1), sessionUse(0), roundTrips(0));
  expect(see(totals, {})).toBe(5);
});

test('a removed allocation is forgotten', () => {
  const totals = keeper();
  see(totals, { 1: 5 });
  totals.observe(nodeSnapshot(), () => []);
  expect(see(totals, {})).toBe(0);
});

test('allocations are kept apart', () => {
  const totals = keeper();
  const other = {
    specification: { id: 'ffff' },
    sessions: [{ record: sessionRecord(1, 'ffff'), use: sessionUse(2) }],
  };
  const mine = { sessions: [{ record: sessionRecord(1), use: sessionUse(3) }] };
  totals.observe(nodeSnapshot(mine, other), ({ allocation }) =>
    roundTrips(allocation === 'ffff' ? 2 : 3),
  );
  expect([same(totals.totalsOf(ALLOCATION)), same(totals.totalsOf('ffff'))]).toEqual([3, 2]);
});
