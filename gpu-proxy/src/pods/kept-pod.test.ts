import type { V1Pod } from '@kubernetes/client-node';
import { requestOf } from './container-request.js';
import { keepPod } from './kept-pod.js';
import { kubeletUid } from './pod-identity.js';
import { containerNamed, endingInitContainers } from './tenant.js';

const LIMITS = { 'nvidia-virtual/gpu': '4' };
const MIRROR = 'a'.repeat(32);

function many(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `k${index}`);
}

test('keepPod() keeps what a binding needs, also of a static pod', () => {
  const pod = {
    metadata: {
      ...{ name: 'p', namespace: 'n', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
      annotations: {
        ...{ 'nvidia-virtual/memory': 'main=8Gi', 'kubernetes.io/config.mirror': MIRROR },
        ...{ 'kubernetes.io/config.hash': MIRROR, 'kubernetes.io/config.source': 'file' },
      },
      ownerReferences: [{ kind: 'Node', name: 'node', controller: true }],
    },
    spec: {
      nodeName: 'node',
      initContainers: [{ name: 'init', resources: { limits: LIMITS } }],
      containers: [{ name: 'main', resources: { limits: LIMITS } }, { name: 'other' }],
    },
    status: {
      phase: 'Running',
      startTime: '2026-01-01T00:00:01Z',
      containerStatuses: [{ name: 'other', containerID: 'containerd://1' }],
    },
  } as unknown as V1Pod;
  const kept = keepPod(pod);
  expect(kubeletUid(kept)).toBe(MIRROR);
  expect(requestOf(kept, 'main', 4)).toEqual(requestOf(pod, 'main', 4));
  expect(endingInitContainers(kept, 4)).toEqual(['init']);
  expect(containerNamed(kept, '1')).toBe('other');
  expect(kept.status).toMatchObject({ phase: 'Running', startTime: '2026-01-01T00:00:01Z' });
});

test('keepPod() keeps little of a pod that a tenant has made as large as it can', () => {
  const filled = (value: string) => Object.fromEntries(many(40_000).map((name) => [name, value]));
  const pod = {
    metadata: {
      ...{ name: 'p', uid: 'u', labels: filled(''), annotations: filled('x') },
      ownerReferences: many(10_000).map((name) => ({ kind: 'Node', name, controller: false })),
    },
    spec: {
      containers: [
        {
          name: 'main',
          env: many(40_000).map((name) => ({ name })),
          resources: { limits: LIMITS },
        },
        ...many(20_000).map((name) => ({ name })),
      ],
    },
  };
  expect(JSON.stringify(keepPod(pod as unknown as V1Pod)).length).toBeLessThan(500);
});
