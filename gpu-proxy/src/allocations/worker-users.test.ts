import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { concurrentUser, freeUser } from './worker-users.js';

const USERS = { first: 100, last: 102 };
const EXCLUSIVE = [{ mode: 'exclusive' }] as GpuRecord[];

function withUsers(...uids: (number | undefined)[]): AllocationSpecification[] {
  return uids.map((uid) => ({ uid }) as AllocationSpecification);
}

/** User ids of processes. */
function living(...uids: number[]): () => Set<number> {
  return () => new Set(uids);
}

test('without a range, workers run as the user of gpu-proxy', () => {
  expect(freeUser(undefined, EXCLUSIVE, withUsers(undefined), living())).toBeUndefined();
  expect(concurrentUser(undefined)).toBeUndefined();
});

test('an allocation gets the first user id that no other has', () => {
  expect(freeUser(USERS, EXCLUSIVE, [], living())).toBe(100);
  expect(freeUser(USERS, EXCLUSIVE, withUsers(100, undefined, 102), living(100))).toBe(101);
});

test('a user id is not given while a process has it', () => {
  expect(freeUser(USERS, EXCLUSIVE, withUsers(100), living(100, 101))).toBe(102);
  const full = () => freeUser(USERS, EXCLUSIVE, withUsers(100), living(100, 101, 102));
  expect(full).toThrow('All 3 user ids for workers are in use, 2 of them only by processes of');
});

test('the last user id is that of concurrent mode, if the node has such a GPU', () => {
  expect(concurrentUser(USERS)).toBe(102);
  expect(freeUser(USERS, EXCLUSIVE, withUsers(100, 101), living())).toBe(102);
  const gpus = [{ mode: 'exclusive' }, { mode: 'concurrent' }] as GpuRecord[];
  const full = () => freeUser(USERS, gpus, withUsers(100, 101), living(102));
  expect(full).toThrow('All 3 user ids for workers are in use, none of them only by processes');
});
