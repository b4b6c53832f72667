import type { Redis } from 'ioredis';

/**
 * A client that has ended already would start a timer for nothing, and keep the process alive with
 * it.
 */
export function disconnect(client: Redis | undefined): void {
  if (client && client.status !== 'end') client.disconnect();
}
