import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { concurrentUser, freeUser } from './worker-users.js';

const USERS = { first: 100, last: 102 };
const EXCLUSIVE = [{ mode: 'exclusive' }] as GpuRecord[];

function withUsers(...uids: (number | undefined)[]): AllocationSpecification[] {
  return uids.map((uid) => ({ uid }) as AllocationSpecification);
}

test('without a range, workers run as the user of gpu-proxy', () => {
  expect(freeUser(undefined, EXCLUSIVE, withUsers(undefined))).toBeUndefined();
  expect(concurrentUser(undefined)).toBeUndefined();
});

test('an allocation gets the first user id that no other has', () => {
  expect(freeUser(USERS, EXCLUSIVE, [])).toBe(100);
  expect(freeUser(USERS, EXCLUSIVE, withUsers(100, undefined, 102))).toBe(101);
});

test('the last user id is that of concurrent mode, if the node has such a GPU', () => {
  expect(concurrentUser(USERS)).toBe(102);
  expect(freeUser(USERS, EXCLUSIVE, withUsers(100, 101))).toBe(102);
  const gpus = [{ mode: 'exclusive' }, { mode: 'concurrent' }] as GpuRecord[];
  expect(() => freeUser(USERS, gpus, withUsers(100, 101))).toThrow('3');
});
