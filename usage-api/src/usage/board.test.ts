import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Board } from './board.js';
import { Figures } from './figures.js';
import { Mirror } from './mirror.js';
import type { GpuNode } from './node-usage.js';
import type { GpuPod } from './pods.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

describe('without clients', () => {
  test('a failed read of the ledger is repeated soon, a successful one is not', async () => {
    let reads = 0;
    const ledger = {
      snapshots: async () => {
        reads += 1;
        if (reads === 1) throw new Error('not there yet');
        return [];
      },
    };
    const board = new Board({
      pods: new Mirror<GpuPod>(),
      nodes: new Mirror<GpuNode>(),
      figures: new Figures({ ledger, maximumAge: 300_000 }),
      interval: 2000,
      restingInterval: 15_000,
    });
    await jest.advanceTimersByTimeAsync(0);
    expect(board.warning).toMatch(/^The ledger of nvidia-virtual \(Redis\) cannot be read: /);
    await jest.advanceTimersByTimeAsync(2000);
    expect(board.warning).toBeUndefined();
    await jest.advanceTimersByTimeAsync(14_000);
    expect(reads).toBe(2);
    await jest.advanceTimersByTimeAsync(1000);
    expect(reads).toBe(3);
    board.close();
  });
});
