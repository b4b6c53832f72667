import type { V1Pod } from '@kubernetes/client-node';
import { findPod, isStatic, kubeletUid } from './pod-identity.js';

const [VICTIM, THIEF] = [
  '0b6f6c5e-1111-4222-8333-944444444444',
  'c0ffee00-1111-4222-8333-944444444444',
];
/** The kubelet's UID of a static pod. */
const HASH = '5f7b1c2d3e4f5a6b7c8d9e0f1a2b3c4d';

function named(name: string, uid: string, annotations: Record<string, string> = {}): V1Pod {
  return { metadata: { name, uid, annotations }, spec: { nodeName: 'node-1', containers: [] } };
}

function written(hash: string, source = 'file'): Record<string, string> {
  return {
    'kubernetes.io/config.hash': hash,
    'kubernetes.io/config.mirror': hash,
    'kubernetes.io/config.source': source,
  };
}

function mirror(
  name: string,
  uid: string,
  annotations = written(HASH),
  made = '2026-01-01T00:00:00Z',
  node = 'node-1',
): V1Pod {
  const { metadata, spec } = named(name, uid, annotations);
  const owner = { apiVersion: 'v1', kind: 'Node', name: node, uid: 'any', controller: true };
  return {
    metadata: { ...metadata, ownerReferences: [owner], creationTimestamp: new Date(made) },
    ...(spec && { spec }),
  };
}

test('number 16: a pod whose annotations claim another UID is not that pod', () => {
  const victim = named('victim', VICTIM);
  for (const thief of [
    named('thief', THIEF, { 'kubernetes.io/config.hash': VICTIM }),
    mirror('thief', THIEF, written(VICTIM)),
  ])
    for (const pods of [
      [thief, victim],
      [victim, thief],
    ])
      expect(findPod(pods, VICTIM, 'node-1')).toBe(victim);
});

test('number 16: a static pod is found by its UID at the kubelet', () => {
  const shown = mirror('static-node-1', THIEF);
  expect(findPod([named('other', VICTIM), shown], HASH, 'node-1')).toBe(shown);
  expect(findPod([shown], THIEF, 'node-1')).toBe(shown);
});

test("a pod is known by its UID, a static pod by its mirror pod's annotation", () => {
  expect([mirror('static-node-1', THIEF), named('other', VICTIM)].map(kubeletUid)).toEqual([
    HASH,
    VICTIM,
  ]);
  expect(kubeletUid(named('thief', THIEF, written(HASH)))).toBe(THIEF);
  expect([HASH, VICTIM].map(isStatic)).toEqual([true, false]);
});

test.each([
  ['has only the hash annotation', named('thief', THIEF, { 'kubernetes.io/config.hash': HASH })],
  ['has no owner', named('thief', THIEF, written(HASH))],
  ['came from the API server', mirror('thief', THIEF, written(HASH, 'api'))],
  [
    'mirrors another',
    mirror('thief', THIEF, { ...written(HASH), 'kubernetes.io/config.mirror': VICTIM }),
  ],
  ['is on another node', mirror('thief', THIEF, written(HASH), '2026-01-01T00:00:00Z', 'node-2')],
])('a pod that %s is not a static pod', (_, pod) => {
  expect(findPod([pod], HASH, 'node-1')).toBeUndefined();
});

test('if two pods claim the same identity, the older one is chosen: the other copied it', () => {
  const [real, forged] = [
    mirror('static-node-1', THIEF),
    mirror('forged', VICTIM, written(HASH), '2026-02-01T00:00:00Z'),
  ];
  expect(findPod([forged, real], HASH, 'node-1')).toBe(real);
  const watched = JSON.parse(JSON.stringify(forged)) as V1Pod;
  expect(findPod([watched, real], HASH, 'node-1')).toBe(real);
});
