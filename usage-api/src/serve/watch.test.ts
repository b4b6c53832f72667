import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { jest } from '@jest/globals';
import { POD_USAGE } from '../definitions.js';
import { API_VERSION, type PodGpuUsage } from '../resources.js';
import { Collection } from '../usage/collection.js';
import { readQuery } from './query.js';
import { Watch } from './watch.js';

/** A response whose client reads on demand. */
class Response extends Writable {
  readonly events: { type: string; object: PodGpuUsage }[] = [];
  #read: (() => void) | undefined;

  writeHead(): void {}

  flushHeaders(): void {}

  override _write(chunk: Buffer, _encoding: string, read: () => void): void {
    this.events.push(JSON.parse(chunk.toString()) as (typeof this.events)[number]);
    this.#read = read;
  }

  /** Reads all that was written, and what is written then. */
  async readAll(): Promise<void> {
    while (this.#read) {
      const read = this.#read;
      this.#read = undefined;
      read();
      await new Promise(setImmediate);
    }
  }
}

const LARGE = 'x'.repeat(20_000);

const pod = (name: string, message = LARGE) =>
  ({
    apiVersion: API_VERSION,
    kind: 'PodGpuUsage',
    metadata: { name, namespace: 'team-a' },
    message,
  }) as PodGpuUsage;

const watches: Watch<PodGpuUsage>[] = [];

function watchOf(collection: Collection<PodGpuUsage>) {
  const response = new Response();
  const watch = new Watch({
    collection,
    query: readQuery(new URLSearchParams('watch=1&allowWatchBookmarks=1'), POD_USAGE),
    tableShape: undefined,
    kind: POD_USAGE.kind,
    response: response as unknown as ServerResponse,
  });
  watches.push(watch);
  return { response, watch };
}

const shown = ({ events }: Response) =>
  events.map(({ type, object: { metadata } }) => `${type} ${metadata.name ?? ''}`);

const names = (count: number) => Array.from({ length: count }, (_, index) => `pod-${100 + index}`);

afterEach(() => {
  for (const watch of watches.splice(0)) watch.end();
  jest.useRealTimers();
});

test('one event is in memory until the client reads, and then it gets the rest', async () => {
  const collection = new Collection<PodGpuUsage>();
  collection.replace(names(500).map((name) => pod(name)));
  const { response } = watchOf(collection);
  expect(response.writableLength).toBeLessThan(2 * LARGE.length);
  await response.readAll();
  expect(shown(response)).toEqual(names(500).map((name) => `ADDED ${name}`));
});

test('of the changes that wait, the last one of each object is sent', async () => {
  const collection = new Collection<PodGpuUsage>();
  const { response } = watchOf(collection);
  collection.replace([pod('first'), pod('kept', 'old'), pod('removed')]);
  collection.replace([pod('first'), pod('kept', 'new')]);
  await response.readAll();
  expect(shown(response)).toEqual(['ADDED first', 'ADDED kept', 'DELETED removed']);
  expect(response.events[1]?.object.message).toBe('new');
});

test('a watch that ends before the client has read gives no bookmark', async () => {
  const collection = new Collection<PodGpuUsage>();
  collection.replace([pod('first'), pod('second')]);
  const { response, watch } = watchOf(collection);
  watch.end();
  await response.readAll();
  expect(shown(response)).toEqual(['ADDED first']);
});

test('a client that is late by more than a minute is disconnected', () => {
  jest.useFakeTimers({ now: Date.now() });
  const collection = new Collection<PodGpuUsage>();
  collection.replace([pod('first'), pod('second')]);
  const { response } = watchOf(collection);
  jest.advanceTimersByTime(60_000);
  collection.replace([pod('first'), pod('second', 'changed')]);
  expect(response.destroyed).toBe(false);
  jest.advanceTimersByTime(60_001);
  collection.replace([pod('first'), pod('second', 'changed again')]);
  expect(response.destroyed).toBe(true);
});
