import { snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import { keepNode, nodeUsage } from './node-usage.js';
import { SlotMap } from './slots.js';

test('a drained GPU has no free slots', () => {
  const gpus = ['GPU-a', 'GPU-b'].map((uuid) => ({
    ...{ uuid, name: 'GPU', memory: 1, slotMemory: 1, slots: 10, mode: 'exclusive', healthy: true },
  }));
  const annotations = {
    'nvidia-virtual/inventory': JSON.stringify({ version: 1, gpus }),
    'nvidia-virtual/drained-gpus': 'gpu-A',
  };
  const counts = { 'nvidia-virtual/gpu': '20' };
  const status = { capacity: counts, allocatable: counts };
  const node = keepNode({ metadata: { name: 'n', annotations }, status });
  const context = { figures: undefined, slots: new SlotMap(), trouble: undefined };
  const usage = nodeUsage(node as NonNullable<typeof node>, context);
  expect(usage.slots).toMatchObject({ total: 20, free: 10 });
  expect(usage.gpus).toMatchObject([
    { drained: true, slots: { free: 0 } },
    { slots: { free: 10 } },
  ]);
  expect(usage.gpus[1]).not.toHaveProperty('drained');
});

test('memory that is in host memory is not in use on the GPU', () => {
  const { gpus, allocations } = snapshot({ allocations: 2, sessions: 1, memory: 1000 });
  const [first, second] = allocations.map((one) => ({ ...one, rate: undefined }));
  const out = { ...second, state: 'out', outBytes: 900 } as typeof first;
  const node = keepNode({
    metadata: { name: 'n' },
    status: { capacity: { 'nvidia-virtual/gpu': '10' } },
  });
  const { memory } = nodeUsage(node as NonNullable<typeof node>, {
    figures: { gpus, at: 0, allocations: [first, out].flatMap((one) => one ?? []) },
    slots: new SlotMap(),
    trouble: undefined,
  });
  expect(memory.used).toBe(1100);
});
