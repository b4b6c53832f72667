import type { ReportedSnapshot } from '@nvidia-virtual/ledger';
import { snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import { Figures } from './figures.js';

const SECOND = 1e9;

/**
 * A ledger that says what the test says; the age of what it says stands for the passing of time.
 */
class SpokenLedger {
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

let ledger: SpokenLedger;
let figures: Figures;
const rate = () => figures.nodes.get('node-1')?.allocations[0]?.rate;
beforeEach(() => {
  ledger = new SpokenLedger();
  figures = new Figures({ ledger, maximumAge: 30_000 });
});

/** What the node said so many seconds ago. */
async function readAt(secondsAgo: number, used: number, waited = 0): Promise<void> {
  Object.assign(ledger, { age: secondsAgo * 1000, used: used * SECOND, waited: waited * SECOND });
  await figures.read();
}

test('use of time is the difference between two figures, by the clock of when the node said them', async () => {
  await readAt(10, 100);
  expect(rate()).toBeUndefined();
  await readAt(0, 102.5, 5);
  expect(rate()?.used).toBeCloseTo(25, 0);
  expect(rate()).toMatchObject({ seconds: 10 });
  expect(rate()?.waiting).toBeCloseTo(50, 0);
});

test('a difference over a moment says nothing, and one over long ago neither', async () => {
  await readAt(3, 0);
  await readAt(0, 3);
  expect(rate()).toBeUndefined();
  figures = new Figures({ ledger, maximumAge: 30_000 });
  await readAt(100, 0);
  await readAt(0, 50);
  expect(rate()).toBeUndefined();
});

test('a count that begins anew is no negative use', async () => {
  await readAt(20, 100);
  await readAt(10, 1);
  expect(rate()).toBeUndefined();
  await readAt(0, 6);
  expect(rate()?.used).toBeCloseTo(50, 0);
});

test('while the ledger is away the last figures stay, until they are too old', async () => {
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
