import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Ports of one process, below those that the kernel assigns. Others run tests at the same time. */
const BLOCK = { size: 100, first: 10_000 + (process.pid % 200) * 100 };
let next = Math.floor(Math.random() * BLOCK.size);

/** Ports of this process that are free, and that it has not returned recently. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = 0; tries < BLOCK.size && ports.length < count; tries++) {
    const port = BLOCK.first + (next++ % BLOCK.size);
    if (await isFree(port)) ports.push(port);
  }
  if (ports.length < count) throw new Error(`no ports from ${BLOCK.first} on are free`);
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

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
