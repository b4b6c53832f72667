import type { SessionRecord } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import { Session } from '../sessions/session.js';
import type { WorkerExit } from '../workers/worker.js';
import { problemsOf, summaryOf } from './summary.js';

const BACKEND = { kind: 'simulated', driver: '/d.so' } as const;
const ORDERLY: WorkerExit = { status: 0, signal: null };

function endedSession(pid: number, exit: WorkerExit, launches?: number): Session {
  const record: SessionRecord = {
    version: 1,
    number: pid,
    allocation: '0123456789abcdef',
    slot: 0,
    startedAt: new Date().toISOString(),
    client: { pid, startTime: '1', program: '/bin/x', uid: 0 },
    worker: { pid: pid + 1, startTime: '1' },
  };
  const session = new Session(record, BACKEND, pino({ enabled: false }));
  session.apply({
    event: 'started',
    pid,
    program: 'x',
    gpu: { name: 'G', uuid: 'GPU-1', memory: 2 ** 33 },
    driverVersion: 13000,
  });
  if (launches !== undefined)
    session.apply({ event: 'ended', reason: 'client exited', peakMemory: 2 ** 20, launches });
  session.end(exit, 0);
  return session;
}

function summary(sessions: Session[], memoryLimit = 0): string[] {
  return summaryOf({
    program: './x',
    backend: BACKEND,
    memoryLimit,
    peakMemory: 3 * 2 ** 20,
    sessions,
  });
}

test('summaryOf() has GPU, quota and usage', () => {
  const lines = summary([endedSession(1, ORDERLY, 2), endedSession(2, ORDERLY, 3)], 2 ** 29);
  expect(lines.slice(0, 6)).toEqual([
    'GPU: G, GPU-1, 8 GiB',
    'backend: simulated (/d.so)',
    'quota: 512 MiB',
    'peak use: 3 MiB',
    'launches: 5',
    'sessions: 2',
  ]);
  expect(lines[6]).toMatch(
    /^ {2}\/bin\/x \(process 1\): \d+\.\d s, peak 1 MiB, 2 launches, client exited$/,
  );
});

test('summaryOf() claims nothing about a dead worker', () => {
  const lines = summary([
    endedSession(1, ORDERLY, 2),
    endedSession(2, { status: null, signal: 'SIGKILL' }),
  ]);
  expect(lines).toContain('launches: at least 2');
  expect(lines.at(-1)).toContain('unknown launches, worker died: signal SIGKILL');
});

test('summaryOf() lists each unsupported call once', () => {
  const sessions = [endedSession(1, ORDERLY, 0), endedSession(2, ORDERLY, 0)];
  for (const session of sessions) session.apply({ event: 'unsupported', call: 'cuX' });
  expect(summary(sessions)).toContain('called and not supported: cuX');
});

test('summaryOf() separates calls of the program from look-ups of its runtime', () => {
  const sessions = [endedSession(1, ORDERLY, 0), endedSession(2, ORDERLY, 0)];
  for (const session of sessions) {
    session.apply({ event: 'notFound', by: 'program', calls: 'cuB,cuA' });
    session.apply({
      event: 'notFound',
      by: 'runtime',
      calls: 'cuGraphCreate,cuGraphClone,cuTexObjectCreate',
    });
  }
  expect(summary(sessions)).toContain('asked for and not supported: cuA, cuB');
  expect(summary(sessions)).toContain(
    "not supported, if the program's CUDA runtime needs it: cuGraph* (2), cuTexObjectCreate",
  );
});

test('summaryOf() says so if CUDA was never called', () => {
  expect(summary([])).toEqual([
    expect.stringMatching(/^\.\/x never called CUDA: it opened no session\./),
  ]);
});

test('problemsOf() lists a refusal once, and every worker that died', () => {
  const [first, second] = [
    endedSession(1, ORDERLY, 0),
    endedSession(2, { status: 1, signal: null }),
  ];
  for (const session of [first, second])
    session.apply({ event: 'refused', sentence: 'The driver is too old.' });
  expect(problemsOf([first, second])).toEqual([
    'The driver is too old.',
    '/bin/x (process 2): worker died: exit status 1; its later CUDA calls failed.',
  ]);
  expect(problemsOf([endedSession(3, ORDERLY, 1)])).toEqual([]);
});
