import type { Tenant } from './tenant.js';

/**
 * Weights of tenants that compete, as the arbiter divides time: below the highest priority, each
 * has `guarantee` of its share, and the highest priority has the rest.
 */
export function effectiveWeights(
  tenants: readonly Tenant[],
  guarantee: number,
): Map<Tenant, number> {
  const highest = Math.max(...tenants.map(({ terms }) => terms.priority));
  const isHigh = ({ terms }: Tenant) => terms.priority === highest;
  const sum = (some: readonly Tenant[]) =>
    some.reduce((total, { terms }) => total + terms.weight, 0);
  const high = sum(tenants.filter(isHigh));
  const gained = ((sum(tenants) - high) * (1 - guarantee)) / high;
  return new Map(
    tenants.map((tenant) => [
      tenant,
      tenant.terms.weight * (isHigh(tenant) ? 1 + gained : guarantee),
    ]),
  );
}
