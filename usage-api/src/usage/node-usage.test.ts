import { snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import { keepNode, nodeUsage } from './node-usage.js';
import { SlotMap } from './slots.js';

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
