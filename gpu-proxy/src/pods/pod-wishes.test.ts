import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { pino } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import type { NodePods } from './node-pods.js';
import { PodWishes } from './pod-wishes.js';

/** More than the debounce of changes, and less than any retry. */
const LOOK_MS = 150;
const POD = { metadata: { uid: 'pod' } } as V1Pod;
const ALLOCATION = { id: 'one', specification: { owner: { podUid: 'pod' } } } as Allocation;

let node: GpuNode;
let pods: NodePods;
/** What the pod wants. */
let wanted: boolean;
/** What the allocation is. */
let present: boolean;
/** Attempts that are being carried out. */
let open: { readonly wish: boolean; end(error?: Error): void }[];
let carriedOut: boolean[];
let refusals: string[];
let wishes: PodWishes<boolean>;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  [wanted, present, open, carriedOut, refusals] = [false, false, [], [], []];
  node = Object.assign(new EventEmitter(), { allocations: [ALLOCATION] }) as unknown as GpuNode;
  const known = { synced: true, find: () => POD };
  pods = Object.assign(new EventEmitter(), known) as unknown as NodePods;
  wishes = new PodWishes<boolean>({
    ...{ node, pods, logger: pino({ enabled: false }) },
    wishes: {
      of: () => (wanted === present ? undefined : wanted),
      carryOut: async (_, __, wish) => {
        carriedOut.push(wish);
        await new Promise<void>((resolve, reject) => {
          open.push({ wish, end: (error) => (error ? reject(error) : resolve()) });
        });
        present = wish;
        return true;
      },
      refused: (_, __, wish, { message }) => refusals.push(`${wish}: ${message}`),
    },
  });
});
afterEach(() => {
  wishes.end();
  jest.useRealTimers();
});

/** Resolves when all that follows by now has happened. */
async function settle(): Promise<void> {
  await new Promise(setImmediate);
  jest.advanceTimersByTime(LOOK_MS);
  await new Promise(setImmediate);
}

async function wants(wish: boolean): Promise<void> {
  wanted = wish;
  pods.emit('changed');
  await settle();
}

async function endOne(error?: Error): Promise<void> {
  open.shift()?.end(error);
  await settle();
}

test('a pod that changes its mind again and again has one attempt at a time', async () => {
  for (let time = 0; time < 5; time++) {
    await wants(true);
    await wants(false);
  }
  expect(carriedOut).toEqual([true]);
  await endOne();
  expect(carriedOut).toEqual([true, false]);
  await wants(true);
  await endOne();
  expect(carriedOut).toEqual([true, false, true]);
  await endOne();
  await wants(true);
  expect([carriedOut.length, open.length]).toEqual([3, 0]);
});

test('a refusal is told if the pod still wants that', async () => {
  const refusal = new ProxyError('ALLOCATION_UNKNOWN', { name: 'one' });
  await wants(true);
  await wants(false);
  await endOne(refusal);
  await wants(true);
  expect([carriedOut, refusals]).toEqual([[true, true], []]);
  await endOne(refusal);
  expect(refusals).toEqual([`true: ${refusal.message}`]);
});
