import type { Tenant } from './tenant.js';

/** Input of a plan. Times are in milliseconds. */
export interface Machine {
  /** Bytes of the GPU for the memory of allocations. */
  readonly room: number;
  /** Bytes of the host for memory that has left. */
  readonly hostMemory: number;
  readonly now: number;
  readonly tenants: readonly Tenant[];
  /** The time from which a resident tenant is idle, if it uses no GPU time until then. */
  idleFrom(tenant: Tenant): number;
}
