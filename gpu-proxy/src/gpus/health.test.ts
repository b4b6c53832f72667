import { ProxyError } from '@nvidia-virtual/service/errors';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import type { Session } from '../sessions/session.js';
import { GpuHealth } from './health.js';

const [GOOD, OTHER] = [{ uuid: 'GPU-1' }, { uuid: 'GPU-2' }];

/** What driver and workers would answer. */
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

/** A worker's end: of one that had served, or of one that had not come so far. */
const death = (served: boolean, killed = false) =>
  ({ died: true, killed, gpu: served ? {} : undefined }) as unknown as Session;
const dies = (times: number, session: Session) => {
  for (let time = 0; time < times; time++) health.noteEnd(session, [GOOD.uuid]);
};

test('number 14: faults of programs, however many, take no GPU away', async () => {
  dies(100, death(true));
  dies(100, death(false, true)); // gpu-proxy itself ended these
  await health.look();
  expect([health.reason(GOOD), tried]).toEqual([undefined, []]);
  // Programs can also make a worker die before it serves. Then one of our own is tried, and starts.
  dies(100, death(false));
  await eventually(() => expect(tried).toContain(GOOD.uuid));
  await health.look();
  expect([health.reason(GOOD), health.reason(OTHER), tried.includes(OTHER.uuid)]).toEqual([
    undefined,
    undefined,
    false,
  ]);
});

test('number 14: a GPU on which no worker starts any more is unusable, and is back once one does', async () => {
  whyNoWorker = 'cuCtxCreate: CUDA_ERROR_ECC_UNCORRECTABLE';
  dies(2, death(false));
  dies(1, death(true));
  dies(2, death(false));
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined(); // one that served stands between them
  dies(1, death(false));
  await eventually(() => expect(health.reason(GOOD)).toContain('CUDA_ERROR_ECC_UNCORRECTABLE'));
  expect(health.reason(OTHER)).toBeUndefined();
  await health.look();
  expect(health.reason(GOOD)).toBeDefined();
  whyNoWorker = undefined;
  await health.look();
  expect(health.reason(GOOD)).toBeUndefined();
});

test('number 14: a driver that does not answer once has lost nothing; one that does not list a GPU twice has, until it does', async () => {
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
