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

test('tells what is new, changed and gone, and is in the order of names', () => {
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

test('a new time of the same figures is no change, but is told to who asks', () => {
  collection.replace([thing('a', 1, 'then')]);
  const version = collection.get('a/a')?.metadata.resourceVersion;
  collection.replace([thing('a', 1, 'now')]);
  expect(heard).toHaveLength(1);
  expect(collection.get('a/a')).toMatchObject({
    timestamp: 'now',
    metadata: { resourceVersion: version },
  });
});

test('what changed since a list is known, deletions too', () => {
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

test('a watch that comes from a replica whose clock is ahead misses nothing', () => {
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

test('a watch can go on from a list although nothing has changed for long', () => {
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

test('what is too old, or from the future, is not known', () => {
  collection.replace([thing('a', 1)]);
  expect(collection.changesSince(1)).toBeUndefined();
  expect(collection.changesSince(Date.now() + 3_600_000)).toBeUndefined();
});
