import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { jest } from '@jest/globals';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import type { Addon } from '../host/addon.js';
import type { WorkerExit } from '../workers/worker.js';
import { LiveSession } from './live-session.js';
import { SessionFiles } from './session-files.js';

// No client is watched and no worker runs: the session only reads its files.
const RECORD: SessionRecord = {
  version: 1,
  number: 1,
  allocation: '0123456789abcdef',
  client: { pid: 0, startTime: '', program: '/bin/x', uid: 1000 },
  worker: { pid: 0, startTime: '' },
  slot: 0,
  startedAt: new Date().toISOString(),
};
const STARTED = {
  event: 'started',
  pid: 7,
  program: 'x',
  gpu: { name: 'g', uuid: 'GPU-1', memory: 8 },
  driverVersion: 13000,
};
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

const NO_ARENAS = {
  arenas: { add: () => {}, remove: () => {}, end: () => {}, whenFreed: async () => {} },
  resident: () => true,
};

function follow(
  files: SessionFiles,
  kill: () => void,
  trouble: (error: Error) => void,
  {
    record = RECORD,
    watchProcess,
  }: { record?: SessionRecord; watchProcess?: Addon['watchProcess'] } = {},
): LiveSession {
  return new LiveSession(
    {
      record,
      files,
      addon: { watchProcess } as Addon,
      backend: { kind: 'simulated', driver: 'd' } as const,
      logger: pino({ level: 'silent' }),
      workerLog: { add: () => {} },
      ...NO_ARENAS,
      memory: () => ({ used: 0, peak: 0 }),
      introduced: () => {},
      trouble,
      ended: () => {},
    },
    () => ({ pid: 0, start: 'cold', kill, leave: () => {} }),
  );
}

function report(...reports: readonly object[]): void {
  for (const one of reports)
    appendFileSync(path.join(directory, '1', 'report'), `${JSON.stringify(one)}\n`);
}

/** How often its worker is killed within a long time. */
function killsOf(...reports: readonly object[]): number {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  report(...reports);
  let kills = 0;
  const session = follow(
    files,
    () => kills++,
    () => {},
  );
  jest.advanceTimersByTime(LONG_MS);
  session.leave();
  return kills;
}

test('a client that connects and sends nothing is disconnected', () => {
  expect(killsOf()).toBe(1);
});

test('a session continues if its worker reported before the report was read', () => {
  expect(killsOf(STARTED)).toBe(0);
});

test('a worker that cannot be supervised is killed, and its session ends with it', () => {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  const noDescriptor = () => {
    throw Object.assign(new Error('pidfd_open'), { errno: -24 });
  };
  const happened: string[] = [];
  let exited: (exit: WorkerExit) => void = () => {};
  new LiveSession(
    {
      record: { ...RECORD, client: { ...RECORD.client, pid: 7 } },
      files,
      addon: { watchProcess: noDescriptor } as unknown as Addon,
      backend: { kind: 'simulated', driver: 'd' } as const,
      logger: pino({ level: 'silent' }),
      workerLog: { add: () => {} },
      ...NO_ARENAS,
      memory: () => ({ used: 0, peak: 0 }),
      introduced: () => {},
      trouble: ({ message }) => happened.push(message),
      ended: () => happened.push('ended'),
    },
    (listener) => {
      exited = listener.exited;
      return { pid: 0, start: 'cold', kill: () => happened.push('killed'), leave: () => {} };
    },
  );
  expect(happened).toEqual([expect.stringContaining('too many open files'), 'killed']);
  exited({ status: null, signal: 'SIGKILL' });
  expect(happened.slice(2)).toEqual(['ended']);
});

test('a worker that outlives its client is killed after 10 s', () => {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  report(STARTED);
  let clientGone = () => {};
  let kills = 0;
  const session = follow(
    files,
    () => kills++,
    () => {},
    {
      record: { ...RECORD, client: { ...RECORD.client, pid: 7 } },
      watchProcess: (_, gone) => {
        clientGone = gone;
        return () => {};
      },
    },
  );
  clientGone();
  jest.advanceTimersByTime(9_999);
  expect(kills).toBe(0);
  jest.advanceTimersByTime(1);
  expect(kills).toBe(1);
  session.leave();
});

test.each([
  ['a killed session', 'kill', 'leave', 3],
  ['a client that exits', 'leave', 'kill', 3],
  ['a killed session whose client stays', 'kill', undefined, 3],
  ['a worker that exits first', undefined, undefined, undefined],
] as const)(
  'its memory is being returned from the first cause of its end on: %s',
  (_, first, second, seconds) => {
    const files = SessionFiles.make(path.join(directory, '1'), RECORD);
    let leave = () => {};
    let exited: (exit: WorkerExit) => void = () => {};
    const watchProcess = (_client: unknown, gone: () => void) => {
      leave = gone;
      return () => {};
    };
    const live = new LiveSession(
      {
        record: { ...RECORD, client: { ...RECORD.client, pid: 7 } },
        files,
        addon: { watchProcess } as unknown as Addon,
        backend: { kind: 'simulated', driver: 'd' } as const,
        logger: pino({ level: 'silent' }),
        workerLog: { add: () => {} },
        ...NO_ARENAS,
        memory: () => ({ used: 0, peak: 0 }),
        introduced: () => {},
        trouble: () => {},
        ended: () => {},
      },
      (listener) => {
        exited = listener.exited;
        return { pid: 0, start: 'cold', kill: () => {}, leave: () => {} };
      },
    );
    for (const step of [first, second]) {
      jest.advanceTimersByTime(1000);
      if (step === 'kill') live.kill();
      if (step === 'leave') leave();
    }
    jest.advanceTimersByTime(2000);
    exited({ status: null, signal: 'SIGKILL' });
    expect(live.session.secondsToReturn).toBe(seconds);
  },
);

test('a worker of an earlier proxy that cannot be supervised is left running', () => {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  const happened: string[] = [];
  const find = () =>
    new LiveSession(
      {
        record: { ...RECORD, client: { ...RECORD.client, pid: 7 } },
        files,
        addon: {
          watchProcess: () => {
            throw new Error('pidfd_open');
          },
        } as unknown as Addon,
        backend: { kind: 'simulated', driver: 'd' },
        logger: pino({ level: 'silent' }),
        workerLog: { add: () => {} },
        ...NO_ARENAS,
        memory: () => ({ used: 0, peak: 0 }),
        introduced: () => {},
        trouble: ({ message }) => happened.push(message),
        ended: () => happened.push('ended'),
      },
      () => ({
        pid: 0,
        start: 'found',
        kill: () => happened.push('killed'),
        leave: () => happened.push('left'),
      }),
    );
  expect(find).toThrow('pidfd_open');
  jest.advanceTimersByTime(LONG_MS);
  expect(happened).toEqual(['left']);
});

test('a worker with an endless report is killed with a message, and its report is not read', () => {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  const line = `${JSON.stringify({ event: 'overHandles', limit: 16 })}\n`;
  appendFileSync(path.join(directory, '1', 'report'), line.repeat((5 * 2 ** 20) / line.length));
  const happened: string[] = [];
  const session = follow(
    files,
    () => happened.push('killed'),
    ({ message }) => happened.push(message),
  );
  jest.runOnlyPendingTimers();
  session.leave();
  expect(happened.slice(0, 2)).toEqual([
    expect.stringContaining('its report grew beyond 4 MiB'),
    'killed',
  ]);
  expect(happened.filter((one) => one !== 'killed')).toHaveLength(1);
});

test('a long report is read to its end', () => {
  const files = SessionFiles.make(path.join(directory, '1'), RECORD);
  report(STARTED);
  appendFileSync(path.join(directory, '1', 'report'), 'none of ours\n'.repeat(100_000));
  report({ event: 'unsupported', call: 'cuLast' });
  const session = follow(
    files,
    () => {},
    () => {},
  );
  expect([...session.session.unsupported]).toEqual([]);
  jest.advanceTimersByTime(1000);
  expect([...session.session.unsupported]).toEqual(['cuLast']);
  session.leave();
});

test('each proxy reports to the user what no earlier one reported', () => {
  SessionFiles.make(path.join(directory, '1'), RECORD);
  const told = (): string[] => {
    const heard: string[] = [];
    const files = new SessionFiles(path.join(directory, '1'));
    const session = follow(
      files,
      () => {},
      ({ message }) => heard.push(message),
    );
    session.leave();
    return heard;
  };
  const overQuota = (asked: number) => ({
    event: 'overQuota',
    asked: asked * 2 ** 20,
    used: 2 ** 20,
    limit: 2 ** 21,
  });
  report(STARTED, overQuota(3), { event: 'unsupported', call: 'cuX' });
  expect(told()).toEqual([
    expect.stringContaining(
      'Process 0 (/bin/x) requested 3 MiB of GPU memory while 1 MiB of the quota of 2 MiB',
    ),
  ]);
  expect(told()).toEqual([]);
  report(overQuota(4), { event: 'overHandles', limit: 16 });
  expect(told()).toEqual([
    expect.stringContaining('requested 4 MiB'),
    expect.stringContaining('16 open handles'),
  ]);
  // If the note was lost, the message is repeated.
  rmSync(path.join(directory, '1', 'told'));
  expect(told()).toHaveLength(3);
});
