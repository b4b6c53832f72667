import { jest } from '@jest/globals';
import type { ReportedSnapshot } from '@nvidia-virtual/ledger';
import { snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import { Figures } from './figures.js';

const SECOND = 1e9;

/** Returns the snapshot set by the test. The snapshot's age simulates the passing of time. */
class FakeLedger {
  failing = false;
  used = 0;
  waited = 0;
  age = 0;

  async snapshots(): Promise<ReportedSnapshot[]> {
    if (this.failing) throw new Error('Redis at x cannot be reached.');
    const one = snapshot({ allocations: 1, sessions: 1 });
    const time = {
      granted: this.used / 2,
      waited: this.waited,
      overrun: this.used / 2,
      windows: 1,
    };
    return [
      {
        ...one,
        allocations: one.allocations.map((allocation) => ({ ...allocation, time })),
        age: this.age,
      },
    ];
  }
}

let ledger: FakeLedger;
let figures: Figures;
const rate = () => figures.nodes.get('node-1')?.allocations[0]?.rate;
beforeEach(() => {
  ledger = new FakeLedger();
  figures = new Figures({ ledger, maximumAge: 30_000 });
  jest.spyOn(Date, 'now').mockReturnValue(1.7e12);
});
afterEach(() => jest.restoreAllMocks());

/** Reads a snapshot that is this many seconds old. */
async function readAt(secondsAgo: number, used: number, waited = 0): Promise<void> {
  Object.assign(ledger, { age: secondsAgo * 1000, used: used * SECOND, waited: waited * SECOND });
  await figures.read();
}

test('used time is the difference between two reports over the time between them', async () => {
  await readAt(10, 100);
  expect(rate()).toBeUndefined();
  await readAt(0, 102.5, 5);
  expect(rate()?.used).toBe(25);
  expect(rate()).toMatchObject({ seconds: 10 });
  expect(rate()?.waiting).toBe(50);
});

test('reports too close or too far apart give no rate', async () => {
  await readAt(3, 0);
  await readAt(0, 3);
  expect(rate()).toBeUndefined();
  figures = new Figures({ ledger, maximumAge: 30_000 });
  await readAt(100, 0);
  await readAt(0, 50);
  expect(rate()).toBeUndefined();
});

test('a counter that restarts gives no negative rate', async () => {
  await readAt(20, 100);
  await readAt(10, 1);
  expect(rate()).toBeUndefined();
  await readAt(0, 6);
  expect(rate()?.used).toBe(50);
});

test('without a ledger the last figures are kept until they are too old', async () => {
  await readAt(0, 1);
  ledger.failing = true;
  await figures.read();
  expect([figures.trouble?.message, figures.nodes.size]).toEqual([
    'Redis at x cannot be reached.',
    1,
  ]);
  figures = new Figures({ ledger, maximumAge: 1000 });
  ledger.failing = false;
  await readAt(5, 1);
  ledger.failing = true;
  await figures.read();
  expect(figures.nodes.size).toBe(0);
});
