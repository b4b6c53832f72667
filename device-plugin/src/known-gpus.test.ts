import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type KnownGpu, KnownGpus } from './known-gpus.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'known-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const gpu = (uuid: string): KnownGpu => ({ uuid, name: 'GPU', memory: 8, slotMemory: 2, slots: 4, mode: 'exclusive', unhealthy: '' });
const states = (known: KnownGpus) => known.all.map(({ uuid, unhealthy }) => [uuid, unhealthy === '']);

test('what was listed last is known at the next start, also after a boot', () => {
  expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  expect(KnownGpus.open(directory, 'boot').take([gpu('a'), gpu('b')])).toBe(true);
  expect(KnownGpus.open(directory, 'boot').all).toEqual([gpu('a'), gpu('b')]);
  expect(KnownGpus.open(directory, 'next').all).toEqual([gpu('a'), gpu('b')]);
});

test('take() says whether anything changed', () => {
  const known = KnownGpus.open(directory, 'boot');
  expect(known.take([gpu('a')])).toBe(true);
  expect(known.take([gpu('a')])).toBe(false);
  expect(known.take([{ ...gpu('a'), unhealthy: 'Xid 79' }])).toBe(true);
});

test('a GPU that is listed no more has failed, stays in its place, and comes back', () => {
  const known = KnownGpus.open(directory, 'boot');
  known.take([gpu('a'), gpu('b')]);
  known.take([gpu('b')]);
  expect(states(known)).toEqual([
    ['a', false],
    ['b', true],
  ]);
  expect(known.all[0]?.unhealthy).toEqual(expect.stringContaining('gpu-proxy lists it no more'));
  known.take([gpu('b'), gpu('a')]);
  expect(known.all).toEqual([gpu('a'), gpu('b')]);
});

test('after a boot without it, a GPU was taken out', () => {
  KnownGpus.open(directory, 'boot').take([gpu('a'), gpu('b')]);
  const known = KnownGpus.open(directory, 'next');
  known.take([gpu('b')]);
  expect(known.all).toEqual([gpu('b')]);
});

test('a file that cannot be understood is as good as none', () => {
  for (const text of ['', '{"version":1', '[]', '{"version":2,"gpus":[]}', 'null']) {
    writeFileSync(path.join(directory, 'gpus.json'), text);
    expect(KnownGpus.open(directory, 'boot').all).toEqual([]);
  }
});

test('a directory that cannot be made is refused in words', () => {
  writeFileSync(path.join(directory, 'file'), '');
  expect(() => KnownGpus.open(path.join(directory, 'file', 'x'), 'boot')).toThrow(/file\/x\/gpus.json cannot be written: not a directory/);
});
