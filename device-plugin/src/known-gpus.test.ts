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

test('what was listed last is known at the next start, also after a boot', () => {
  expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  expect(KnownGpus.open(directory, 'boot').take(listing(gpu('a'), gpu('b')))).toBe(true);
  expect(KnownGpus.open(directory, 'boot').all).toEqual([gpu('a'), gpu('b')]);
  expect(KnownGpus.open(directory, 'next').all).toEqual([gpu('a'), gpu('b')]);
});

test('take() says whether anything changed', () => {
  const known = KnownGpus.open(directory, 'boot');
  expect(known.take(listing(gpu('a')))).toBe(true);
  expect(known.take(listing(gpu('a')))).toBe(false);
  expect(known.take(listing({ ...gpu('a'), unhealthy: 'Xid 79' }))).toBe(true);
});

test('a GPU that is listed no more has failed, stays in its place, and comes back', () => {
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

test('after a boot without it, a GPU was taken out', () => {
  KnownGpus.open(directory, 'boot').take(listing(gpu('a'), gpu('b')));
  const known = KnownGpus.open(directory, 'next');
  known.take(listing(gpu('b')));
  expect(known.all).toEqual([gpu('b')]);
});

describe('a GPU that gpu-proxy is no more to have', () => {
  const narrowed = { gpus: [gpu('a')], selection: 'real 0' };
  const user = (gpus: readonly string[], slots: readonly string[]) => ({ gpus, slots });
  const leavingAfter = (...users: ReturnType<typeof user>[]) => {
    const known = KnownGpus.open(directory, 'boot');
    known.take(listing(gpu('a'), gpu('b')));
    known.take(narrowed);
    known.forgetUnused(users);
    return known;
  };

  test('has not failed, and is forgotten', () => {
    const known = leavingAfter();
    expect([known.all, known.leaving]).toEqual([[gpu('a')], []]);
  });

  test('had failed before, and is forgotten too', () => {
    const known = KnownGpus.open(directory, 'boot');
    known.take(listing(gpu('a'), gpu('b')));
    known.take(listing(gpu('a')));
    known.take(narrowed);
    expect(states(known)).toEqual([['a', true]]);
  });

  test('leaves as long as a container runs on it, or has a slot of it', () => {
    const slots = (uuid: string) => slotIds(gpu(uuid)).slice(0, 1);
    expect(leavingAfter(user(['b'], slots('a'))).leaving).toEqual([gpu('b')]);
    expect(leavingAfter(user(['a'], slots('b'))).leaving).toEqual([gpu('b')]);
    expect(leavingAfter(user(['a'], slots('a'))).leaving).toEqual([]);
    leavingAfter(user([], slots('b')));
    expect(KnownGpus.open(directory, 'boot').leaving).toEqual([gpu('b')]);
  });

  test('is there again when it is configured again', () => {
    const known = leavingAfter(user(['b'], []));
    known.take({ gpus: [gpu('a'), gpu('b')], selection: 'real 0 1' });
    expect([known.all, known.leaving]).toEqual([[gpu('a'), gpu('b')], []]);
  });
});

test('a file that cannot be understood is as good as none', () => {
  for (const text of ['', '{"version":1', '[]', '{"version":2,"gpus":[]}', 'null']) {
    writeFileSync(path.join(directory, 'gpus.json'), text);
    expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  }
});

test('a directory that cannot be made is refused in words', () => {
  writeFileSync(path.join(directory, 'file'), '');
  expect(() => KnownGpus.open(path.join(directory, 'file', 'x'), 'boot')).toThrow(
    /file\/x\/gpus.json cannot be written: not a directory/,
  );
});
