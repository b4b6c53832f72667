import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import type { UidRange } from '@nvidia-virtual/service/configuration/kinds';
import { ProxyError } from '@nvidia-virtual/service/errors';

/** Users of workers. Undefined: workers run as the user of gpu-proxy. */
type Users = UidRange | undefined;

/**
 * User id of all allocations in concurrent mode: the last of the range. MPS serves one user at a
 * time.
 */
export function concurrentUser(users: Users): number | undefined {
  return users?.last;
}

/**
 * A user id for the workers of a new allocation in exclusive mode, which no allocation of `present`
 * has, and no process: one of an ended allocation could reach the new workers.
 * @param living returns the user ids of processes
 * @throws ProxyError USERS_FULL
 */
export function freeUser(
  users: Users,
  gpus: readonly GpuRecord[],
  present: readonly AllocationSpecification[],
  living: (users: UidRange) => ReadonlySet<number>,
): number | undefined {
  if (!users) return undefined;
  const taken = new Set(present.map(({ uid }) => uid));
  if (gpus.some(({ mode }) => mode === 'concurrent')) taken.add(concurrentUser(users));
  const kept = living(users);
  for (let uid = users.first; uid <= users.last; uid++)
    if (!taken.has(uid) && !kept.has(uid)) return uid;
  const left = [...kept].filter((uid) => !taken.has(uid)).length;
  throw new ProxyError('USERS_FULL', {
    count: users.last - users.first + 1,
    left: left || 'none',
  });
}
