import {
  type ContainerRequest,
  peak,
  type Strategy,
} from '@nvidia-virtual/kube-common/pod-request';
import type { NodeGpus } from '../cluster/node-gpus.js';
import { demandOf, gpuOf, needOf, nodeOf, nodeWithUsed } from '../testing/nodes.js';
import { Demand } from './demand.js';
import { freeFor, holdingOf, place, Steps } from './placement.js';

const NOBODY = { uid: 'nobody', priority: 0 };

/** UUIDs of each container's GPUs, joined. */
function placed(
  node: NodeGpus,
  needs: readonly ContainerRequest[],
  strategy: Strategy = 'binpack',
): string | undefined {
  const placement = place(demandOf(...needs), node.gpus, freeFor(NOBODY, node), strategy);
  return placement?.map((gpus) => gpus.map(({ uuid }) => uuid).join('')).join(' ');
}

test.each<[string, number[], ContainerRequest[], Strategy, string | undefined]>([
  ['binpack chooses the fullest GPU with room', [2, 6, 9], [needOf('main', 3)], 'binpack', 'b'],
  ['spread chooses the emptiest', [2, 6, 9], [needOf('main', 3)], 'spread', 'a'],
  [
    'slots of one container are not spread over GPUs',
    [6, 6],
    [needOf('main', 5)],
    'binpack',
    undefined,
  ],
  ['several GPUs are distinct', [0, 0, 8], [needOf('main', 8, { gpus: 2 })], 'binpack', 'ab'],
  ['more GPUs than there are', [0], [needOf('main', 4, { gpus: 2 })], 'binpack', undefined],
  ['two containers share a GPU', [0, 0], [needOf('one', 5), needOf('two', 5)], 'binpack', 'a a'],
  [
    'two containers without sharing',
    [4, 4],
    [needOf('one', 5), needOf('two', 5)],
    'binpack',
    'a b',
  ],
  [
    'the search backtracks from a dead end',
    [3, 4],
    [needOf('one', 6), needOf('two', 4), needOf('three', 3)],
    'binpack',
    'b a a',
  ],
  [
    'an init container uses slots that are reused later',
    [9, 0],
    [needOf('init', 8, { init: true }), needOf('main', 2)],
    'binpack',
    'b b',
  ],
  [
    'init containers do not add up',
    [0],
    [needOf('x', 10, { init: true }), needOf('y', 10, { init: true }), needOf('main', 10)],
    'binpack',
    'a a a',
  ],
  [
    'a sidecar before an init container adds up',
    [0],
    [needOf('sidecar', 1), needOf('init', 10, { init: true })],
    'binpack',
    undefined,
  ],
  [
    'a sidecar after it does not add up',
    [0],
    [needOf('init', 10, { init: true }), needOf('sidecar', 1)],
    'binpack',
    'a a',
  ],
])('place(): %s', (_, used, needs, strategy, expected) => {
  expect(placed(nodeWithUsed(...used), needs, strategy)).toBe(expected);
});

test('place() skips unhealthy GPUs, GPUs in another mode, and GPUs with other memory', () => {
  const node = nodeOf(
    gpuOf('ill', { healthy: false }),
    gpuOf('concurrent', { mode: 'concurrent' }),
    gpuOf('small', { slotMemory: 2 ** 30 }),
    gpuOf('right'),
  );
  expect(placed(node, [needOf('main', 1, { memory: 2 ** 31 })])).toBe('right');
  expect(placed(node, [needOf('main', 1, { mode: 'concurrent' })])).toBe('concurrent');
});

test('place() gives a container one oversubscribed GPU, and what it can have of it', () => {
  const over = { slots: 15, mostSlots: 10 };
  const [first, second] = [gpuOf('first', over), gpuOf('second', over)];
  expect(placed(nodeOf(first), [needOf('one', 10), needOf('other', 5)])).toBe('first first');
  expect(placed(nodeOf(first), [needOf('one', 11)])).toBe(undefined);
  expect(placed(nodeOf(first, second), [needOf('main', 1, { gpus: 2 })])).toBe(undefined);
  const nodes = nodeOf(first, gpuOf('third'), gpuOf('fourth'));
  expect(placed(nodes, [needOf('main', 2, { gpus: 2 })])).toBe('thirdfourth');
});

test('place() finds a GPU by its UUID in any letter case', () => {
  const node = nodeOf(gpuOf('GPU-1a'), gpuOf('GPU-1b'));
  const demand = new Demand({
    containers: [needOf('main', 1)],
    gpuTypes: [],
    gpuUuids: ['gpu-1B'],
    placement: undefined,
  });
  expect(place(demand, node.gpus, freeFor(NOBODY, node), 'binpack')).toEqual([[node.gpus[1]]]);
});

test('place() finds a placement if one exists, as an exhaustive search does', () => {
  let found = 0;
  for (let seed = 1; seed <= 400; seed++) {
    const next = numbers(seed);
    const node = nodeWithUsed(...Array.from({ length: 1 + next(3) }, () => next(11)));
    const needs = Array.from({ length: 1 + next(4) }, (_, index) => {
      const gpus = 1 + next(2);
      return needOf(`c${index}`, gpus * (1 + next(5)), { gpus, init: index < 2 && next(3) === 0 });
    });
    const placement = place(
      demandOf(...needs),
      node.gpus,
      freeFor(NOBODY, node),
      seed % 2 ? 'binpack' : 'spread',
    );
    expect([seed, placement !== undefined]).toEqual([seed, exists(needs, node)]);
    if (placement === undefined) continue;
    found++;
    const holding = holdingOf(demandOf(...needs), placement);
    for (const [index, gpu] of node.gpus.entries()) {
      expect(holding.get(gpu.uuid) ?? 0).toBeLessThanOrEqual(
        freeFor(NOBODY, node)[index] as number,
      );
    }
    needs.forEach((need, index) => {
      expect(new Set(placement[index]).size).toBe(need.gpus);
    });
  }
  expect(found).toBeGreaterThan(50);
  expect(found).toBeLessThan(350);
});

test('place() tries the GPUs of a container in one order only', () => {
  const steps = new Steps();
  const { left } = steps;
  const { gpus } = nodeWithUsed(0, 0, 0, 0, 0, 0, 0, 0);
  const demand = demandOf(needOf('main', 9, { gpus: 9 }));
  expect(place(demand, gpus, Array(8).fill(10), 'binpack', steps)).toBeUndefined();
  expect(left - steps.left).toBeLessThan(2 ** 8 + 10);
});

test('place() does not search if the free slots are too few in sum', () => {
  const steps = new Steps();
  const { left } = steps;
  const { gpus } = nodeWithUsed(0, 0);
  const demand = demandOf(...Array.from({ length: 7 }, (_, index) => needOf(`c${index}`, 3)));
  expect(place(demand, gpus, [10, 10], 'binpack', steps)).toBeUndefined();
  expect(left - steps.left).toBe(gpus.length);
});

test('place() without steps left finds what needs no search', () => {
  const { gpus } = nodeWithUsed(0, 0);
  const fits = (slots: readonly number[], left: number) => {
    const demand = demandOf(...slots.map((each, index) => needOf(`c${index}`, each)));
    const steps = new Steps();
    steps.left = left;
    return place(demand, gpus, [10, 10], 'binpack', steps) !== undefined;
  };
  expect([fits([5, 5, 5, 5], 0), fits([4, 4, 3, 3, 3, 3], 0)]).toEqual([true, false]);
  expect(fits([4, 4, 3, 3, 3, 3], 1000)).toBe(true);
});

test('a pod with promised slots keeps them from pods of lower priority', () => {
  const node = nodeWithUsed(0, 0);
  node.promise({ uid: 'high', priority: 10, holding: new Map([['a', 8]]), demand: undefined });
  expect(freeFor({ uid: 'low', priority: 5 }, node)).toEqual([2, 10]);
  expect(freeFor({ uid: 'higher', priority: 11 }, node)).toEqual([10, 10]);
  expect(freeFor({ uid: 'high', priority: 10 }, node)).toEqual([10, 10]);
});

/** Every combination of GPUs for every container, by the kubelet's rule. */
function exists(needs: readonly ContainerRequest[], node: NodeGpus): boolean {
  const free = freeFor(NOBODY, node);
  const chosen: number[][] = [];
  const fits = () =>
    node.gpus.every((_, gpu) => {
      const slots = needs.map(({ init, slots: all, gpus }, index) => ({
        init,
        slots: chosen[index]?.includes(gpu) ? all / gpus : 0,
      }));
      return peak(slots) <= (free[gpu] as number);
    });
  const choose = (index: number): boolean => {
    const need = needs[index];
    if (need === undefined) return fits();
    return subsets(node.gpus.length, need.gpus).some((subset) => {
      chosen[index] = subset;
      return choose(index + 1);
    });
  };
  return choose(0);
}

function subsets(count: number, size: number, from = 0): number[][] {
  if (size === 0) return [[]];
  return Array.from({ length: Math.max(0, count - from) }, (_, index) => from + index).flatMap(
    (first) => subsets(count, size - 1, first + 1).map((rest) => [first, ...rest]),
  );
}

/** Integers below a bound; the same sequence for the same seed. */
function numbers(seed: number): (bound: number) => number {
  let state = seed * 2654435761;
  return (bound) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) >>> 0;
    return (state >>> 8) % bound;
  };
}

/** Slots of 2 GiB: 55 of a large GPU, 9 of a small one. */
const SIZED = { slotMemory: 2 * 2 ** 30 };
const large = gpuOf('large', { ...SIZED, slots: 55 });
const small = gpuOf('small', { ...SIZED, slots: 9 });

test.each([
  ['the slots of its memory where they give more time', small, 4, 20, 4],
  ['the slots of its time where those of its memory give less', large, 4, 20, 11],
  ['a whole GPU for all of its time', large, 10, 100, 55],
  ['its slots without a request for time', large, 4, undefined, 4],
])('a container takes %s', (_, gpu, slots, cores, taken) => {
  const node = nodeOf(gpu);
  const containers = [needOf('main', slots, { cores, memory: slots * SIZED.slotMemory })];
  const demand = new Demand({ containers, gpuTypes: [], gpuUuids: [], placement: undefined }, 10);
  const placement = place(demand, node.gpus, freeFor(NOBODY, node), 'binpack');
  expect(placement && holdingOf(demand, placement)).toEqual(new Map([[gpu.uuid, taken]]));
});

test('the parts of time of all containers on a GPU fit into it', () => {
  const node = nodeOf(large);
  const containers = Array.from({ length: 6 }, (_, index) => needOf(`c${index}`, 2, { cores: 20 }));
  const fits = (count: number) =>
    place(
      new Demand(
        {
          containers: containers.slice(0, count),
          gpuTypes: [],
          gpuUuids: [],
          placement: undefined,
        },
        10,
      ),
      node.gpus,
      freeFor(NOBODY, node),
      'binpack',
    ) !== undefined;
  expect([fits(5), fits(6)]).toEqual([true, false]);
});

test('without slotCores a request for time takes nothing more', () => {
  const node = nodeOf(large);
  const demand = demandOf(needOf('main', 4, { cores: 90 }));
  const placement = place(demand, node.gpus, freeFor(NOBODY, node), 'binpack');
  expect(placement && holdingOf(demand, placement)).toEqual(new Map([['large', 4]]));
});

test('a pod may prefer another placement than the scheduler does', () => {
  const node = nodeWithUsed(3, 0);
  const uuidOf = (placement: Strategy | undefined, usual: Strategy) => {
    const request = { containers: [needOf('a', 2)], gpuTypes: [], gpuUuids: [], placement };
    return place(new Demand(request), node.gpus, freeFor(NOBODY, node), usual)?.[0]?.[0]?.uuid;
  };
  const [packed, spread] = [uuidOf(undefined, 'binpack'), uuidOf(undefined, 'spread')];
  expect(packed).not.toBe(spread);
  expect(uuidOf('spread', 'binpack')).toBe(spread);
  expect(uuidOf('binpack', 'spread')).toBe(packed);
});

test.each([
  [['!GPU-A'], [], 'B'],
  [['!gpu-b'], [], 'A'],
  [['!GPU-A', '!GPU-B'], [], undefined],
  [[], ['!h200'], undefined],
  [[], ['H200', '!A100'], 'A'],
])('of GPUs A and B, uuids %j and types %j allow %s', (gpuUuids, gpuTypes, expected) => {
  const node = nodeOf(gpuOf('GPU-a'), gpuOf('GPU-b'));
  const request = { containers: [needOf('a', 2)], gpuTypes, gpuUuids, placement: undefined };
  const placement = place(new Demand(request), node.gpus, freeFor(NOBODY, node), 'binpack');
  expect(placement?.[0]?.[0]?.uuid).toBe(expected && `GPU-${expected.toLowerCase()}`);
});
