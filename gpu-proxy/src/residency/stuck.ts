import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Machine } from './machine.js';
import { sum, type Tenant } from './tenant.js';

/**
 * Why a waiting tenant cannot enter, whatever turn it has, as a sentence. Undefined: it will enter.
 */
export function whyStuck(waiting: Tenant, machine: Machine): string | undefined {
  return whyNoRoom(waiting, machine) ?? whyNoHostMemory(waiting, machine);
}

function whyNoRoom(waiting: Tenant, { room, now, tenants }: Machine): string | undefined {
  const fixed = tenants.filter((one) => one.onGpu && one.whyFixed(now) !== undefined);
  const left = room - sum(tenants, (one) => (fixed.includes(one) ? one.terms.quota : one.remains));
  if (waiting.gain <= left) return undefined;
  const holders = tenants
    .filter((one) => fixed.includes(one) || one.remains > 0)
    .map((one) => {
      const held = formatMemorySize(fixed.includes(one) ? one.terms.quota : one.remains);
      return `${one.id} keeps ${held} (${one.whyFixed(now) ?? 'memory that cannot leave'})`;
    });
  return (
    `It needs ${formatMemorySize(waiting.gain)} of GPU memory, and at most ` +
    `${formatMemorySize(Math.max(0, left))} of ${formatMemorySize(room)} can become free` +
    `${holders.length > 0 ? `: ${holders.join(', ')}` : ''}.`
  );
}

function whyNoHostMemory(
  waiting: Tenant,
  { room, hostMemory, now, tenants }: Machine,
): string | undefined {
  const deficit = waiting.gain - (room - sum(tenants, ({ reserved }) => reserved));
  if (deficit <= 0) return undefined;
  const left = hostMemory - sum(tenants, ({ hosted }) => hosted);
  const movable = tenants.filter(
    (one) =>
      one.state === 'leaving' ||
      one.state === 'entering' ||
      (one.state === 'resident' && one.whyFixed(now) === undefined && one.bytes <= left),
  );
  if (sum(movable, ({ gain }) => gain) >= deficit) return undefined;
  return (
    `It needs ${formatMemorySize(waiting.gain)} of GPU memory, and the memory of no other ` +
    `allocation can leave: only ${formatMemorySize(Math.max(0, left))} of ` +
    `${formatMemorySize(hostMemory)} host memory are left.`
  );
}
