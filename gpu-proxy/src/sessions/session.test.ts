import { jest } from '@jest/globals';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import { parseReport, Session } from './session.js';

const GPU = { name: 'Simulated GPU', uuid: 'GPU-1', memory: 8 };
const RECORD: SessionRecord = {
  version: 1,
  number: 3,
  allocation: '0123456789abcdef',
  client: { pid: 7, startTime: '1', program: '/bin/x', uid: 1000 },
  worker: { pid: 8, startTime: '2' },
  slot: 0,
  startedAt: new Date().toISOString(),
};
const STARTED = { event: 'started', pid: 7, program: 'x', gpu: GPU, driverVersion: 13000 };

function newSession(): { session: Session; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const logger = pino(
    { base: null, level: 'debug' },
    { write: (line: string) => lines.push(JSON.parse(line)) },
  );
  return { session: new Session(RECORD, { kind: 'simulated', driver: 'd' }, logger), lines };
}

test.each([
  STARTED,
  { event: 'refused', sentence: 's' },
  { event: 'unsupported', call: 'cuX' },
  { event: 'notFound', by: 'program', calls: 'cuX,cuY' },
  { event: 'overQuota', asked: 3, used: 2, limit: 4 },
  { event: 'overPinned', asked: 3, limit: 2 },
  { event: 'overHandles', limit: 16 },
  { event: 'overThreads', limit: 8 },
  { event: 'overrun', seconds: 12 },
  { event: 'ended', reason: 'r', peakMemory: 1, launches: 2 },
])('parseReport() accepts $event', (report) => {
  expect(parseReport(JSON.stringify(report))).toEqual(report);
});

test.each([
  '',
  'null',
  '[]',
  '{',
  '{"event":"other"}',
  '{"event":"refused"}',
  '{"event":"unsupported","call":7}',
  '{"event":"notFound","by":"runtime"}',
  '{"event":"notFound","by":"nobody","calls":"cuX"}',
  '{"event":"notFound","by":"program","calls":"cu\\n"}',
  `{"event":"notFound","by":"program","calls":"${'a'.repeat(70_000)}"}`,
  '{"event":"unsupported","call":""}',
  '{"event":"unsupported","call":"cu\\n"}',
  `{"event":"unsupported","call":"${'a'.repeat(129)}"}`,
  '{"event":"overQuota","asked":3,"used":"2","limit":4}',
  '{"event":"overPinned","limit":2}',
  '{"event":"overHandles"}',
  '{"event":"overThreads","limit":null}',
  '{"event":"overrun","seconds":"long"}',
  '{"event":"ended","reason":"r"}',
  '{"event":"started","pid":7,"program":"x","gpu":null}',
])('parseReport() refuses %s', (line) => {
  expect(parseReport(line)).toBeUndefined();
});

test('the end of a session is one log line: client, GPU, usage, reason', () => {
  const { session, lines } = newSession();
  session.apply(parseReport(JSON.stringify(STARTED)) as never);
  session.apply({
    event: 'ended',
    reason: 'client exited',
    peakMemory: 100,
    launches: 5,
    fault: 'CUDA_ERROR_ILLEGAL_ADDRESS',
  });
  session.end({ status: 0, signal: null }, 90);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    level: 30,
    pid: 7,
    uid: 1000,
    program: '/bin/x',
    backend: 'simulated',
    gpu: 'Simulated GPU',
    uuid: 'GPU-1',
    peakMemory: 100,
    launches: 5,
    fault: 'CUDA_ERROR_ILLEGAL_ADDRESS',
    ended: 'client exited',
  });
});

test.each([
  [{ status: null, signal: 'SIGSEGV' as const }, 'worker died: signal SIGSEGV'],
  [{ status: 3, signal: null }, 'worker died: exit status 3'],
])('the death of a worker is an error line with its reason', (exit, ended) => {
  const { session, lines } = newSession();
  session.apply(parseReport(JSON.stringify(STARTED)) as never);
  session.end(exit, 64);
  expect(session.died).toBe(true);
  expect(lines[0]).toMatchObject({ level: 50, ended, peakMemory: 64 });
  expect(lines[0]).not.toHaveProperty('launches');
});

test('if the exit status of a worker is unknown, its reports decide whether it died', () => {
  const [orderly, silent, unfinished] = [newSession(), newSession(), newSession()];
  for (const { session } of [orderly, unfinished])
    session.apply(parseReport(JSON.stringify(STARTED)) as never);
  orderly.session.apply({ event: 'ended', reason: 'client exited', peakMemory: 1, launches: 2 });
  for (const { session } of [orderly, silent, unfinished]) session.end(undefined, 0);
  expect([orderly.session.died, orderly.session.ended]).toEqual([false, 'client exited']);
  expect([silent.session.died, silent.session.opened]).toEqual([false, false]);
  expect([unfinished.session.died, unfinished.session.ended]).toEqual([
    true,
    expect.stringContaining('its exit status is unknown'),
  ]);
});

test('a session logs how long its memory stayed reserved after the client had exited', () => {
  const { session, lines } = newSession();
  session.apply(parseReport(JSON.stringify(STARTED)) as never);
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  session.end({ status: 0, signal: null }, 0, now - 2000);
  clock.mockRestore();
  expect(lines[0]?.['secondsToReturn']).toBe(2);
});

test('a session that the worker refused is not a dead worker', () => {
  const { session, lines } = newSession();
  session.apply({ event: 'refused', sentence: 'The driver is too old.' });
  session.end({ status: 1, signal: null }, 0);
  expect(session.died).toBe(false);
  expect(lines.at(-1)).toMatchObject({
    level: 30,
    refused: 'The driver is too old.',
    ended: 'refused',
  });
});

test('an unsupported call is logged once by name', () => {
  const { session, lines } = newSession();
  for (const call of ['cuX', 'cuX', 'cuY']) session.apply({ event: 'unsupported', call });
  expect(lines.map((line) => line['call'])).toEqual(['cuX', 'cuY']);
});

test('the number of unsupported calls that are kept and logged is bounded', () => {
  const { session, lines } = newSession();
  for (let i = 0; i < 10_000; i++) session.apply({ event: 'unsupported', call: `cu${i}` });
  expect([session.unsupported.size, lines.length]).toEqual([512, 512]);
});

test('missing names are logged once: in one line if a runtime asks for many', () => {
  const { session, lines } = newSession();
  session.apply({
    event: 'notFound',
    by: 'runtime',
    calls: 'cuGraphCreate,cuGraphClone,cuTexObjectCreate',
  });
  for (const calls of ['cuA', 'cuA,cuB'])
    session.apply({ event: 'notFound', by: 'program', calls });
  session.end({ status: 0, signal: null }, 0);
  expect(lines.slice(0, 2).map(({ msg }) => msg)).toEqual([
    'the CUDA runtime of the program knows calls that are not supported yet: cuGraph* (2), ' +
      'cuTexObjectCreate',
    'asked for and not supported: cuA, cuB',
  ]);
});

test('the number of names that were not found is bounded', () => {
  const { session } = newSession();
  for (let i = 0; i < 10_000; i++)
    session.apply({ event: 'notFound', by: 'program', calls: `cu${i},cu${i}x` });
  expect(session.notFound.program.size).toBe(512);
});

test('a connection that never opened a session is not logged as one', () => {
  const { session, lines } = newSession();
  session.end({ status: 0, signal: null }, 0);
  expect(session.opened).toBe(false);
  expect(lines[0]).toMatchObject({ level: 20 });
});
