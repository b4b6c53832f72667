import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type KnownGpu, KnownGpus, type Listing } from './known-gpus.js';
import { slotIds } from './slots.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'known-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const gpu = (uuid: string): KnownGpu => ({
  uuid,
  name: 'GPU',
  memory: 8,
  slotMemory: 2,
  slots: 4,
  mode: 'exclusive',
  unhealthy: '',
});
const listing = (...gpus: KnownGpu[]): Listing => ({ gpus, selection: 'real' });
const states = (known: KnownGpus) =>
  known.all.map(({ uuid, unhealthy }) => [uuid, unhealthy === '']);

test('the last list of GPUs is known at the next start, also after a reboot', () => {
  expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  expect(KnownGpus.open(directory, 'boot').take(listing(gpu('a'), gpu('b')))).toBe(true);
  expect(KnownGpus.open(directory, 'boot').all).toEqual([gpu('a'), gpu('b')]);
  expect(KnownGpus.open(directory, 'next').all).toEqual([gpu('a'), gpu('b')]);
});

test('take() returns whether the list changed', () => {
  const known = KnownGpus.open(directory, 'boot');
  expect(known.take(listing(gpu('a')))).toBe(true);
  expect(known.take(listing(gpu('a')))).toBe(false);
  expect(known.take(listing({ ...gpu('a'), unhealthy: 'Xid 79' }))).toBe(true);
});

test('a GPU that is no longer listed has failed, keeps its index, and can recover', () => {
  const known = KnownGpus.open(directory, 'boot');
  known.take(listing(gpu('a'), gpu('b')));
  known.take(listing(gpu('b')));
  expect(states(known)).toEqual([
    ['a', false],
    ['b', true],
  ]);
  expect(known.all[0]?.unhealthy).toEqual(expect.stringContaining('gpu-proxy no longer lists it'));
  known.take(listing(gpu('b'), gpu('a')));
  expect(known.all).toEqual([gpu('a'), gpu('b')]);
});

test('a GPU that is missing after a reboot was removed', () => {
  KnownGpus.open(directory, 'boot').take(listing(gpu('a'), gpu('b')));
  const known = KnownGpus.open(directory, 'next');
  known.take(listing(gpu('b')));
  expect(known.all).toEqual([gpu('b')]);
});

describe('a GPU that is no longer configured for gpu-proxy', () => {
  const narrowed = { gpus: [gpu('a')], selection: 'real 0' };
  const user = (gpus: readonly string[], slots: readonly string[]) => ({ gpus, slots });
  const leavingAfter = (...users: ReturnType<typeof user>[]) => {
    const known = KnownGpus.open(directory, 'boot');
    known.take(listing(gpu('a'), gpu('b')));
    known.take(narrowed);
    known.forgetUnused(users);
    return known;
  };

  test('is not failed, and is forgotten', () => {
    const known = leavingAfter();
    expect([known.all, known.leaving]).toEqual([[gpu('a')], []]);
  });

  test('is forgotten also if it had failed before', () => {
    const known = KnownGpus.open(directory, 'boot');
    known.take(listing(gpu('a'), gpu('b')));
    known.take(listing(gpu('a')));
    known.take(narrowed);
    expect(states(known)).toEqual([['a', true]]);
  });

  test('stays in the list while a container runs on it or holds a slot of it', () => {
    const slots = (uuid: string) => slotIds(gpu(uuid)).slice(0, 1);
    expect(leavingAfter(user(['b'], slots('a'))).leaving).toEqual([gpu('b')]);
    expect(leavingAfter(user(['a'], slots('b'))).leaving).toEqual([gpu('b')]);
    expect(leavingAfter(user(['a'], slots('a'))).leaving).toEqual([]);
    leavingAfter(user([], slots('b')));
    expect(KnownGpus.open(directory, 'boot').leaving).toEqual([gpu('b')]);
  });

  test('returns when it is configured again', () => {
    const known = leavingAfter(user(['b'], []));
    known.take({ gpus: [gpu('a'), gpu('b')], selection: 'real 0 1' });
    expect([known.all, known.leaving]).toEqual([[gpu('a'), gpu('b')], []]);
  });
});

test('a file that cannot be parsed counts as missing', () => {
  for (const text of ['', '{"version":1', '[]', '{"version":2,"gpus":[]}', 'null']) {
    writeFileSync(path.join(directory, 'gpus.json'), text);
    expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  }
});

test('a directory that cannot be created is an error with a message', () => {
  writeFileSync(path.join(directory, 'file'), '');
  expect(() => KnownGpus.open(path.join(directory, 'file', 'x'), 'boot')).toThrow(
    /file\/x\/gpus.json cannot be written: not a directory/,
  );
});
