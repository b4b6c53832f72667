import { pino } from 'pino';
import { locateInstallation } from '../installation.js';
import { takeInventory } from '../inventory.js';
import { GpuNode, type NodeOptions } from '../node.js';
import { StateDirectory } from '../state-directory.js';

export type LogLine = Record<string, unknown>;

/** A node on the simulated driver in this process, with what it logged. */
export async function startNode(state: string, options: Partial<NodeOptions> = {}): Promise<{ node: GpuNode; log: LogLine[] }> {
  const log: LogLine[] = [];
  const installation = locateInstallation();
  const backend = { kind: 'simulated', driver: installation.simulatedDriver } as const;
  const node = await GpuNode.start({
    installation,
    backend,
    gpus: await takeInventory({ installation, backend, gpus: [] }),
    logger: pino({ base: null }, { write: (line: string) => log.push(JSON.parse(line)) }),
    state: options.state ?? StateDirectory.open(state),
    arbitrated: false,
    ...options,
  });
  return { node, log };
}
