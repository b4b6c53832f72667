import { jest } from '@jest/globals';
import { API_VERSION, type UsageObject } from '../resources.js';
import { type Change, Collection } from './collection.js';

interface Thing extends UsageObject {
  readonly value: number;
}

function thing(name: string, value: number, timestamp = 'now'): Thing {
  return {
    apiVersion: API_VERSION,
    kind: 'Thing',
    metadata: { name, namespace: 'a' },
    timestamp,
    value,
  };
}

let collection: Collection<Thing>;
let heard: [string, string][];
beforeEach(() => {
  collection = new Collection();
  heard = [];
  collection.on('changes', (changes: readonly Change<Thing>[]) =>
    heard.push(
      ...changes.map(({ type, object }) => [type, object.metadata.name] as [string, string]),
    ),
  );
});

test('emits additions, changes and deletions, and lists objects sorted by name', () => {
  collection.replace([thing('b', 1), thing('a', 1)]);
  expect(collection.list().map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  collection.replace([thing('b', 2), thing('c', 1)]);
  expect(heard).toEqual([
    ['ADDED', 'a'],
    ['ADDED', 'b'],
    ['MODIFIED', 'b'],
    ['ADDED', 'c'],
    ['DELETED', 'a'],
  ]);
});

test('a new timestamp with the same figures emits no change but is listed', () => {
  collection.replace([thing('a', 1, 'then')]);
  const version = collection.get('a/a')?.metadata.resourceVersion;
  collection.replace([thing('a', 1, 'now')]);
  expect(heard).toHaveLength(1);
  expect(collection.get('a/a')).toMatchObject({
    timestamp: 'now',
    metadata: { resourceVersion: version },
  });
});

test('changesSince() returns changes and deletions since a list', () => {
  collection.replace([thing('a', 1), thing('b', 1)]);
  const listed = collection.revision;
  collection.replace([thing('b', 2)]);
  expect(
    collection.changesSince(listed)?.map(({ type, object }) => [type, object.metadata.name]),
  ).toEqual([
    ['DELETED', 'a'],
    ['MODIFIED', 'b'],
  ]);
});

test('a watch that moves from a replica whose clock is ahead misses nothing', () => {
  jest.useFakeTimers({ now: 1.7e12 });
  try {
    const other = new Collection<Thing>();
    collection = new Collection();
    for (const replica of [other, collection]) replica.replace([thing('a', 1), thing('b', 1)]);
    jest.setSystemTime(1.7e12 + 60_000);
    other.replace([thing('a', 1)]);
    const listed = other.revision;
    jest.setSystemTime(1.7e12 + 55_000);
    collection.replace([thing('a', 2)]);
    expect(
      collection.changesSince(listed)?.map(({ type, object }) => [type, object.metadata.name]),
    ).toEqual([
      ['DELETED', 'b'],
      ['MODIFIED', 'a'],
    ]);
  } finally {
    jest.useRealTimers();
  }
});

test('a watch can continue from a list after a long time without changes', () => {
  jest.useFakeTimers({ now: 1.7e12 });
  try {
    collection = new Collection();
    collection.replace([thing('a', 1), thing('b', 1)]);
    const early = collection.revision;
    jest.setSystemTime(1.7e12 + 3_600_000);
    const other = new Collection<Thing>();
    expect([
      collection.changesSince(collection.revision),
      other.changesSince(collection.revision),
    ]).toEqual([[], []]);
    expect(collection.changesSince(early)).toBeDefined();
    collection.replace([thing('a', 1)]);
    jest.setSystemTime(1.7e12 + 7_200_000);
    collection.replace([]);
    expect(collection.changesSince(early)).toBeUndefined();
  } finally {
    jest.useRealTimers();
  }
});

test('changesSince() refuses versions that are too old or in the future', () => {
  collection.replace([thing('a', 1)]);
  expect(collection.changesSince(1)).toBeUndefined();
  expect(collection.changesSince(Date.now() + 3_600_000)).toBeUndefined();
});
