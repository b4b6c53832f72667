import { EventEmitter } from 'node:events';
import { jest } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { pino } from 'pino';
import type { GpuNode } from '../node.js';
import type { Grants } from './grants.js';
import type { NodePods } from './node-pods.js';
import type { Holders } from './pod-resources.js';
import { Release } from './release.js';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const MINUTE = 60_000;

interface Situation {
  readonly pods?: readonly V1Pod[];
  readonly trouble?: string;
  readonly holders?: Holders;
}

const grantsOf = (slot: string, ages: readonly number[]) =>
  ages.map((age) => ({
    id: `${slot} ${age / 1000} s`,
    slots: [slot],
    createdAt: new Date(NOW - age).toISOString(),
    busy: false,
  }));

type Grant = ReturnType<typeof grantsOf>[number];

/** Looks once. @returns the ids of the removed grants */
async function removed(all: readonly Grant[], situation: Situation = {}): Promise<string[]> {
  const { pods = [], trouble, holders = new Map() as Holders } = situation;
  const ids: string[] = [];
  const release = new Release({
    node: Object.assign(new EventEmitter(), { allocations: [] }) as unknown as GpuNode,
    grants: { all, remove: ({ id }: Grant) => ids.push(id) } as unknown as Grants,
    pods: Object.assign(new EventEmitter(), {
      ...{ synced: true, all: pods, trouble },
      find: () => undefined,
    }) as unknown as NodePods,
    podResources: { holders: async () => holders },
    logger: pino({ enabled: false }),
    lookEveryMs: 1000,
  });
  await jest.advanceTimersByTimeAsync(1200);
  release.end();
  return ids;
}

/** A pod that runs its init container. @param age milliseconds since its start */
const initializing = (age: number): V1Pod => ({
  metadata: { name: 'train', namespace: 'team-a', uid: 'uid' },
  spec: {
    containers: [],
    initContainers: [{ name: 'init', resources: { limits: { [RESOURCE]: '1' } } }],
  },
  status: { phase: 'Pending', startTime: new Date(NOW - age) },
});

const EIGHT_NEW = [0, 1, 2, 3, 4, 5, 6, 7].map((second) => second * 1000);

beforeEach(() => {
  jest.useFakeTimers({ now: NOW });
});

afterEach(() => {
  jest.useRealTimers();
});

test('a grant that the kubelet does not list goes after ten minutes', async () => {
  const grants = grantsOf('slot', [9 * MINUTE, 10 * MINUTE]);
  expect(await removed(grants)).toEqual(['slot 600 s']);
});

test('with eight newer ones of its slot, it goes after a minute', async () => {
  const grants = grantsOf('slot', [...EIGHT_NEW, 50_000, MINUTE, 2 * MINUTE]);
  expect(await removed(grants)).toEqual(['slot 60 s', 'slot 120 s']);
});

test('with seven newer ones, or newer ones of other slots, it stays', async () => {
  const grants = [
    ...grantsOf('slot', [...EIGHT_NEW.slice(1), 2 * MINUTE]),
    ...grantsOf('other', [...EIGHT_NEW.slice(1), 1500]),
  ];
  expect(await removed(grants)).toEqual([]);
});

test.each<[string, Situation]>([
  ['an init container of a pod may need it', { pods: [initializing(2 * MINUTE)] }],
  ['the list of pods is stale', { trouble: 'The API server does not answer.' }],
  [
    'the kubelet lists its slot',
    { holders: new Map([['slot', [{ namespace: 'team-a', pod: 'new', container: 'main' }]]]) },
  ],
])('it stays if %s', async (_, situation) => {
  const grants = grantsOf('slot', [...EIGHT_NEW, 2 * MINUTE]);
  expect(await removed(grants, situation)).toEqual([]);
  expect(await removed(grants)).toEqual(['slot 120 s']);
});

test('a pod in its init container keeps no grant that is newer than its start', async () => {
  const grants = grantsOf('slot', [11 * MINUTE, 14 * MINUTE - 999, 14 * MINUTE]);
  expect(await removed(grants, { pods: [initializing(14 * MINUTE)] })).toEqual(['slot 660 s']);
});

test('of superseded grants, it keeps those of the minute before its start', async () => {
  const grants = grantsOf('slot', [...EIGHT_NEW, 2 * MINUTE, 2.5 * MINUTE, 3 * MINUTE]);
  const pods = [initializing(2 * MINUTE)];
  expect(await removed(grants, { pods })).toEqual(['slot 180 s']);
});
