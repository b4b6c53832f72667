import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Machine } from './machine.js';
import { sum, type Tenant } from './tenant.js';

/**
 * The reason why a waiting tenant can never enter, as a sentence. Undefined: it will enter.
 */
export function whyStuck(waiting: Tenant, machine: Machine): string | undefined {
  return whyNoRoom(waiting, machine) ?? whyNoHostMemory(waiting, machine);
}

function whyNoRoom(waiting: Tenant, { room, now, tenants }: Machine): string | undefined {
  const keeps = (one: Tenant) => (one.whyFixed(now) === undefined ? one.fixed : one.reserved);
  const others = tenants.filter((one) => one !== waiting);
  const left = room - sum(others, keeps);
  const { quota } = waiting.terms;
  if (quota <= left) return undefined;
  const holders = others
    .filter((one) => keeps(one) > 0)
    .map((one) => {
      const why = one.whyFixed(now) ?? 'memory that cannot leave';
      return `${one.id} keeps ${formatMemorySize(keeps(one))} (${why})`;
    });
  return (
    `It needs ${formatMemorySize(quota)} of GPU memory, and at most ` +
    `${formatMemorySize(Math.max(0, left))} of ${formatMemorySize(room)} can become free` +
    `${holders.length > 0 ? `: ${holders.join(', ')}` : ''}.`
  );
}

function whyNoHostMemory(
  waiting: Tenant,
  { room, hostMemory, now, tenants }: Machine,
): string | undefined {
  const deficit = waiting.needed - (room - sum(tenants, ({ reserved }) => reserved));
  if (deficit <= 0) return undefined;
  const left = Math.max(0, hostMemory - sum(tenants, ({ hosted }) => hosted));
  const movable = tenants.filter((one) => one !== waiting && one.whyFixed(now) === undefined);
  const unused = sum(movable, ({ reserved, here }) => reserved - here);
  const memory = sum(movable, ({ here, fixed }) => here - fixed);
  const arenas = sum(movable, ({ arena, out }) => Math.max(0, arena - out));
  if (unused + Math.min(memory, left + arenas) >= deficit) return undefined;
  return (
    `It needs ${formatMemorySize(waiting.needed)} of GPU memory, and not so much memory of other ` +
    `allocations can leave: only ${formatMemorySize(left)} of ` +
    `${formatMemorySize(hostMemory)} host memory are left.`
  );
}
