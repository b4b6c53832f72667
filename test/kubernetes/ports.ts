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
 * An address of this machine that Kubernetes accepts as an endpoint: it refuses loopback addresses.
 */
export function hostAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (!found)
    throw new Error(
      'this machine has no IPv4 address but loopback ones, and Kubernetes accepts none of ' +
        'those as an endpoint',
    );
  return found.address;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}
