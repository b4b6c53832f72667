import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION, RESOURCE } from '@nvidia-virtual/kube-common/names';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { SPECIFICATION } from '../testing/node-snapshot.js';
import { placedPods } from './placed-pods.js';

/** Each container with its slots. */
function podOf(slots: Readonly<Record<string, number>>, more: Partial<V1Pod> = {}): V1Pod {
  const containers = Object.entries(slots).map(([name, count]) => ({
    name,
    ...(count > 0 && { resources: { limits: { [RESOURCE]: String(count) } } }),
  }));
  return { metadata: { uid: 'uid' }, spec: { containers }, ...more };
}

function allocationOf(
  container: string,
  slots: number,
  gpus: readonly string[],
  more: Partial<AllocationSpecification> = {},
): AllocationSpecification {
  return {
    ...SPECIFICATION,
    owner: { namespace: 'default', pod: 'pod', podUid: 'uid', container },
    slots: Array.from({ length: slots }, (_, index) => `${container}-${index}`),
    gpus,
    ...more,
  };
}

function placed(pod: V1Pod | undefined, ...allocations: readonly AllocationSpecification[]) {
  return placedPods(allocations, { find: (uid) => (uid === 'uid' ? pod : undefined) });
}

test('slots of all containers count on the GPUs that the node gave to them', () => {
  const pod = podOf({ one: 4, two: 3, three: 2, idle: 0 });
  const allocations = [
    allocationOf('one', 4, ['a', 'b']),
    allocationOf('two', 3, ['b']),
    allocationOf('three', 2, ['c']),
  ];
  expect(placed(pod, ...allocations)).toEqual([
    {
      pod: 'uid',
      gpus: [
        { gpu: 'a', slots: 2 },
        { gpu: 'b', slots: 5 },
        { gpu: 'c', slots: 2 },
      ],
    },
  ]);
});

test('the scheduler knows the mirror pod of a static pod by another UID', () => {
  const pod = podOf({ main: 1 }, { metadata: { uid: 'mirror' } });
  expect(placed(pod, allocationOf('main', 1, ['a']))).toMatchObject([{ pod: 'mirror' }]);
});

const ASSIGNED = { version: 1, containers: { main: [{ gpu: 'a', slots: 1 }] } };

test.each<[string, V1Pod | undefined, ...AllocationSpecification[]]>([
  [
    'that our scheduler placed',
    podOf(
      { main: 1 },
      { metadata: { annotations: { [ANNOTATION.assigned]: JSON.stringify(ASSIGNED) } } },
    ),
    allocationOf('main', 1, ['a']),
  ],
  [
    'with a container that may get another GPU',
    podOf({ main: 1, late: 1 }),
    allocationOf('main', 1, ['a']),
  ],
  [
    'whose allocation is draining',
    podOf({ main: 1 }),
    allocationOf('main', 1, ['a'], { draining: true }),
  ],
  [
    'that has ended',
    podOf({ main: 1 }, { status: { phase: 'Failed' } }),
    allocationOf('main', 1, ['a']),
  ],
  ['that the API server does not list', undefined, allocationOf('main', 1, ['a'])],
])('a pod %s is left out', (_, pod, ...allocations) => {
  expect(placed(pod, ...allocations)).toEqual([]);
});

test('an allocation of no pod is left out', () => {
  expect(placed(podOf({ main: 1 }), SPECIFICATION)).toEqual([]);
});

test('the list takes a part of the annotations that the API server accepts', () => {
  const uuid = (index: number) => `GPU-${String(index).padStart(36, '0')}`;
  const gpus = Array.from({ length: 16 }, (_, index) => uuid(index));
  const sizes = [1, 16].map((count) => {
    const owners = Array.from({ length: 1000 }, (_, index) => String(index).padStart(36, '0'));
    const allocations = owners.map((podUid) => {
      const one = allocationOf('main', 100 * count, gpus.slice(0, count));
      return { ...one, owner: { namespace: 'default', pod: 'pod', container: 'main', podUid } };
    });
    const find = (uid: string) => podOf({ main: 100 * count }, { metadata: { uid } });
    const list = placedPods(allocations, { find });
    expect(list.every((one) => one.gpus.length === count)).toBe(true);
    return { pods: list.length, small: JSON.stringify(list).length < 32 * 1024 };
  });
  expect(sizes).toEqual([
    { pods: 256, small: true },
    { pods: 16, small: true },
  ]);
});
