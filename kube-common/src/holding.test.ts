import type { V1Pod } from '@kubernetes/client-node';
import { assignedHolding } from './holding.js';
import { ANNOTATION, RESOURCE } from './names.js';

const container = (name: string, slots: number) => ({
  name,
  resources: { limits: { [RESOURCE]: String(slots) } },
});
const podWith = (assigned: string | undefined): V1Pod => ({
  metadata: { annotations: assigned === undefined ? {} : { [ANNOTATION.assigned]: assigned } },
  spec: {
    initContainers: [
      { ...container('sidecar', 1), restartPolicy: 'Always' },
      container('prepare', 8),
      container('nothing', 0),
    ],
    containers: [container('one', 4), container('two', 4)],
  },
});
const assignment = (containers: object) => JSON.stringify({ version: 1, containers });

test('assignedHolding() counts slots that an init container leaves to later ones once', () => {
  const on = (gpu: string, slots: number) => [{ gpu, slots }];
  const containers = {
    sidecar: on('a', 1),
    prepare: on('a', 8),
    one: on('a', 4),
    two: [...on('a', 2), ...on('b', 2)],
  };
  expect(assignedHolding(podWith(assignment(containers)))).toEqual(
    new Map([
      ['a', 9],
      ['b', 2],
    ]),
  );
});

test('assignedHolding() counts what a container takes for its part of the time', () => {
  const pod = podWith(
    assignment({ one: [{ gpu: 'a', slots: 4, taken: 11 }], two: [{ gpu: 'a', slots: 4 }] }),
  );
  expect(assignedHolding(pod)).toEqual(new Map([['a', 15]]));
});

test('assignedHolding() counts nothing for a container named like a method', () => {
  const pod = podWith(assignment({ one: [{ gpu: 'a', slots: 4 }] }));
  pod.spec?.containers.push({ name: 'constructor' }, { name: 'toString' });
  expect(assignedHolding(pod)).toEqual(new Map([['a', 4]]));
});

test('assignedHolding() counts a pod that moves on both GPUs', () => {
  const moving = { version: 1, containers: { one: [{ gpu: 'b', slots: 4, taken: 6 }] } };
  const pod = podWith(JSON.stringify({ ...moving, former: 'a', move: 1 }));
  expect(assignedHolding(pod)).toEqual(
    new Map([
      ['b', 6],
      ['a', 6],
    ]),
  );
});

test.each([undefined, '', '{', 'null', '{"version":2,"containers":{}}'])(
  'assignedHolding() is undefined for %j',
  (text) => {
    expect(assignedHolding(podWith(text))).toBeUndefined();
  },
);
