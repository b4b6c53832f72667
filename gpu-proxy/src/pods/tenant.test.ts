import { expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import type { Holders } from './pod-resources.js';
import { findTenant } from './tenant.js';

const IDS = { main: 'a'.repeat(64), side: 'b'.repeat(64) };
const PEER = { podUid: 'uid', containerId: IDS.main };
const [MAIN, SIDE] = [holder('web', 'main'), holder('web', 'side')];

const POD: V1Pod = {
  metadata: { namespace: 'default', name: 'web', uid: 'uid' },
  spec: { containers: [{ name: 'main' }, { name: 'side' }] },
  status: {
    containerStatuses: Object.entries(IDS).map(([name, id]) => ({
      name,
      containerID: `containerd://${id}`,
      image: 'any',
      imageID: '',
      ready: true,
      restartCount: 0,
    })),
  },
};

function holder(pod: string, container: string) {
  return { namespace: 'default', pod, container };
}

function find(
  holders: Holders,
  containerId: string | undefined = PEER.containerId,
  slots = ['x'],
  pod = POD,
): string {
  return findTenant({ peer: { ...PEER, containerId }, pod, slots, holders });
}

test('a slot belongs to the container for which the kubelet names it', () => {
  expect(find(new Map([['x', [MAIN]]]))).toBe('main');
  expect(find(new Map([['x', [holder('other', 'main'), MAIN]]]))).toBe('main');
  expect(() => find(new Map([['x', [holder('other', 'main')]]]))).toThrow(
    'assigned them to pod default/other',
  );
  const halfTwice = new Map([
    ['x', [MAIN]],
    ['y', [holder('other', 'main'), MAIN]],
  ]);
  expect(find(halfTwice, IDS.main, ['x', 'y'])).toBe('main');
  expect(() => find(new Map([['x', [MAIN]]]), IDS.main, ['x', 'y'])).toThrow(
    'does not list the slots x, y',
  );
});

test('if two containers of a pod have the same slot, the container id decides', () => {
  const both: Holders = new Map([['x', [MAIN, SIDE]]]);
  expect([find(both, IDS.main), find(both, IDS.side)]).toEqual(['main', 'side']);
  expect(() => find(both, 'c'.repeat(64))).toThrow('does not know yet which container');
  expect(() => find(new Map([['x', [MAIN]]]), IDS.side)).toThrow(
    'a process of container side tried to use it',
  );
});

test('an init container may run again in a pod that is initialized, so the id decides', () => {
  const resources = { limits: { 'nvidia-virtual/gpu': '1' } };
  const pod: V1Pod = {
    ...POD,
    spec: { containers: [{ name: 'main' }], initContainers: [{ name: 'prepare', resources }] },
    status: { ...POD.status, conditions: [{ type: 'Initialized', status: 'True' }] },
  };
  const holders: Holders = new Map([['x', [MAIN]]]);
  expect(find(holders, IDS.main, ['x'], pod)).toBe('main');
  expect(() => find(holders, 'c'.repeat(64), ['x'], pod)).toThrow(
    'does not know yet which container',
  );
});
