import type { Redis } from 'ioredis';

/**
 * Disconnects unless the client has ended already: it would start a timer that keeps the process
 * alive.
 */
export function disconnect(client: Redis | undefined): void {
  if (client && client.status !== 'end') client.disconnect();
}
