import { setImmediate } from 'node:timers/promises';
import type { GpuRecord, TimeUse } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import { SPECIFICATION } from '../testing/node-snapshot.js';
import { OversubscribedGpu } from './oversubscribed-gpu.js';

const GiB = 2 ** 30;
const GPU: GpuRecord = {
  ...{ uuid: 'GPU-1', index: 0, name: 'any', memory: 100 * GiB, contextMemory: 0 },
  mode: 'exclusive',
};

test('a program that waits in vain is reported once, however often others are asked', async () => {
  const memory = 60 * GiB;
  const allocationOf = (id: string, state: 'resident' | 'out') =>
    ({
      ...{ id, state, waits: state === 'out', suspended: false, sessions: [] },
      ...{ memoryUsed: memory, outBytes: 0 },
      specification: { ...SPECIFICATION, id, memory, gpus: [GPU.uuid] },
    }) as unknown as Allocation;
  let asked = 0;
  const reported: string[] = [];
  const waiting = allocationOf('waits', 'out');
  const gpu = new OversubscribedGpu(GPU, {
    logger: pino({ enabled: false }),
    roomOf: () => 100 * GiB,
    hostMemory: () => 200 * GiB,
    guaranteedShare: () => 50,
    allocations: () => [allocationOf('stays', 'resident'), waiting],
    timeOf: () => ({ granted: 0, waited: 0, overrun: 0 }) as TimeUse,
    evict: async () => {
      asked++;
      throw new Error('it does not want to.');
    },
    admit: async () => 0,
    moved: () => {},
    trouble: ({ id }) => reported.push(id),
  });
  const play = async (from: number, seconds: number) => {
    for (let at = 0; at < seconds * 1000; at += 100) {
      gpu.look(performance.now() + from * 1000 + at);
      await setImmediate();
    }
  };
  await play(0, 120);
  expect(asked).toBeGreaterThan(3);
  expect(reported).toEqual(['waits']);

  // A program that waits later is another matter.
  Object.assign(waiting, { waits: false });
  await play(120, 1);
  Object.assign(waiting, { waits: true });
  await play(121, 60);
  expect(reported).toEqual(['waits', 'waits']);
});
