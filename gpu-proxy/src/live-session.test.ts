import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { jest } from '@jest/globals';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import type { Addon } from './addon.js';
import { LiveSession } from './live-session.js';
import { SessionFiles } from './session-files.js';

// Nobody is watched, and no worker runs: what a session hears comes from its files alone.
const RECORD: SessionRecord = {
  version: 1,
  number: 1,
  allocation: '0123456789abcdef',
  client: { pid: 0, startTime: '', program: '/bin/x', uid: 1000 },
  worker: { pid: 0, startTime: '' },
  slot: 0,
  startedAt: new Date().toISOString(),
};
const STARTED = { event: 'started', pid: 7, program: 'x', gpu: { name: 'g', uuid: 'GPU-1', memory: 8 }, driverVersion: 13000 };
const LONG_MS = 120_000;

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'session-'));
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
  rmSync(directory, { recursive: true, force: true });
});

/** How often its worker is killed within a long time. */
function killsOf(report: string): number {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  appendFileSync(path.join(directory, '1', 'report'), report);
  let kills = 0;
  const session = new LiveSession(
    {
      ...{ record: RECORD, files, addon: {} as Addon, backend: { kind: 'simulated', driver: 'd' } as const },
      logger: pino({ level: 'silent' }),
      memory: () => ({ used: 0, peak: 0, pinned: 0 }),
      introduced: () => {},
      trouble: () => {},
      ended: () => {},
    },
    () => ({ pid: 0, start: 'cold', kill: () => kills++, leave: () => {} }),
  );
  jest.advanceTimersByTime(LONG_MS);
  session.leave();
  return kills;
}

test('whoever connects and says nothing is sent away', () => {
  expect(killsOf('')).toBe(1);
});

test('a session whose worker reported before anybody read it goes on', () => {
  expect(killsOf(`${JSON.stringify(STARTED)}\n`)).toBe(0);
});
