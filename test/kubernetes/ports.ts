import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Different ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/**
 * An address of this machine that Kubernetes accepts as an endpoint: it refuses loopback and
 * link-local addresses. @returns undefined if there is none
 */
export function findHostAddress(family: 'IPv4' | 'IPv6'): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  return addresses.find(
    (one) => one.family === family && !one.internal && !one.address.startsWith('fe80:'),
  )?.address;
}

/** The IPv4 address that Kubernetes accepts as an endpoint. @throws Error if there is none */
export function hostAddress(): string {
  const found = findHostAddress('IPv4');
  if (found === undefined)
    throw new Error(
      'this machine has no IPv4 address but loopback ones, and Kubernetes accepts none of ' +
        'those as an endpoint',
    );
  return found;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}
