import { ProxyError } from '@nvidia-virtual/service/errors';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import type { Session } from '../sessions/session.js';
import { GpuHealth } from './health.js';

const [GOOD, OTHER] = [{ uuid: 'GPU-1' }, { uuid: 'GPU-2' }];

/** Answers of the driver and of probe workers. */
let listed: readonly string[] | ProxyError;
let whyNoWorker: string | undefined;
let tried: string[];
let health: GpuHealth;
beforeEach(() => {
  [listed, whyNoWorker, tried] = [[GOOD.uuid, OTHER.uuid], undefined, []];
  health = new GpuHealth({
    gpus: [GOOD, OTHER] as never,
    logger: pino({ enabled: false }),
    everyMs: 1_000_000,
    listed: async () => {
      if (listed instanceof Error) throw listed;
      return new Set(listed);
    },
    arrivals: { look: async () => undefined },
    whyNoWorker: async ({ uuid }) => {
      tried.push(uuid);
      return whyNoWorker;
    },
  });
});
afterEach(() => health.end());

/** The end of a worker that had served, or of one that never served. */
const death = (served: boolean, killed = false) =>
  ({ died: true, killed, gpu: served ? {} : undefined }) as unknown as Session;
const dies = (times: number, session: Session) => {
  for (let time = 0; time < times; time++) health.noteEnd(session, [GOOD.uuid]);
};

test('number 14: no number of program faults makes a GPU unhealthy', async () => {
  dies(100, death(true));
  dies(100, death(false, true)); // ended by gpu-proxy itself
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, []]);
  // Programs can also crash a worker before it serves. Then a probe worker is started, and it
  // succeeds.
  dies(100, death(false));
  await eventually(() => expect(tried).toContain(GOOD.uuid));
  await health.look();
  expect([health.reason(GOOD), health.reason(OTHER), tried.includes(OTHER.uuid)]).toEqual([
    undefined,
    undefined,
    false,
  ]);
});

test('number 14: a GPU on which no worker starts is unhealthy until one does', async () => {
  whyNoWorker = 'cuCtxCreate: CUDA_ERROR_ECC_UNCORRECTABLE';
  dies(2, death(false));
  dies(1, death(true));
  dies(2, death(false));
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined(); // a worker that served resets the count
  dies(1, death(false));
  await eventually(() => expect(health.reason(GOOD)).toContain('CUDA_ERROR_ECC_UNCORRECTABLE'));
  expect(health.reason(OTHER)).toBeUndefined();
  await health.look();
  expect(health.reason(GOOD)).toBeDefined();
  whyNoWorker = undefined;
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined();
});

test('number 14: a GPU missing in two lists is unhealthy until it is listed', async () => {
  listed = new ProxyError('GPU_NOT_LISTED', { reason: 'no answer' });
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined();
  listed = [OTHER.uuid];
  await health.look();
  expect([health.reason(GOOD), health.reason(OTHER)]).toEqual([expect.any(String), undefined]);
  listed = [GOOD.uuid, OTHER.uuid];
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined();
});

test('Xids that programs cause never make a GPU suspected', async () => {
  whyNoWorker = 'cuCtxCreate: CUDA_ERROR_UNKNOWN';
  for (const xid of [13, 31, 43, 45, 68, 69]) health.noteXid({ gpu: GOOD.uuid, xid, count: 1000 });
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, []]);
});

test('after another Xid, a probe worker decides', async () => {
  health.noteXid({ gpu: GOOD.uuid, xid: 94, count: 1 });
  expect(tried).toEqual([]); // no tenant decides how often probes start
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, [GOOD.uuid]]);
  whyNoWorker = 'cuCtxCreate: CUDA_ERROR_ECC_UNCORRECTABLE';
  health.noteXid({ gpu: GOOD.uuid, xid: 12345, count: 1 });
  await health.look();
  expect(health.reason(GOOD)).toContain('CUDA_ERROR_ECC_UNCORRECTABLE');
  whyNoWorker = undefined;
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined();
});

test('a GPU that must be reset is unhealthy at once, until it was gone', async () => {
  health.noteXid({ gpu: GOOD.uuid, xid: 95, count: 1 });
  expect(health.reason(GOOD)).toContain('Xid 95');
  expect(health.reason(OTHER)).toBeUndefined();
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([expect.stringContaining('Xid 95'), []]);
  listed = [OTHER.uuid];
  await health.look();
  await health.look();
  listed = [GOOD.uuid, OTHER.uuid];
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, [GOOD.uuid]]);
});

test('a GPU whose memory is full has not failed', async () => {
  whyNoWorker = 'the warm worker cannot create a context: CUDA_ERROR_OUT_OF_MEMORY';
  health.noteXid({ gpu: GOOD.uuid, xid: 94, count: 1 });
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, [GOOD.uuid]]);
});
