import path from 'node:path';
import { pino } from 'pino';
import { backendOf } from '../gpus/backend.js';
import { takeInventory } from '../gpus/inventory.js';
import { Addon } from '../host/addon.js';
import type { HostNamespaces } from '../host/host-namespaces.js';
import { locateInstallation } from '../host/installation.js';
import { HostLauncher } from '../host/launcher.js';
import { StateDirectory } from '../host/state-directory.js';
import type { NodeOptions } from '../node.js';
import { GpuNode } from '../node.js';

export type LogLine = Record<string, unknown>;

/** For a node whose workers have rooms, as in Kubernetes. */
export function launcherWithRooms(
  state: string,
  namespaces: HostNamespaces,
  driver = locateInstallation().simulatedDriver,
): HostLauncher {
  const { launcher: executable } = locateInstallation();
  const shared = ['arbiter', 'simulated-gpus'].map((name) => path.join(state, name));
  const files = { allocations: path.join(state, 'allocations'), shared, driver };
  return new HostLauncher({ executable, namespaces, files, logger: pino({ enabled: false }) });
}

/** A node on the simulated driver in this process, with its log. */
export async function startNode(
  state: string,
  options: Partial<NodeOptions> = {},
): Promise<{ node: GpuNode; log: LogLine[] }> {
  const log: LogLine[] = [];
  const installation = locateInstallation();
  const opened = options.state ?? StateDirectory.open(state, new Addon(installation.addon));
  const { simulatedDriver: driver } = installation;
  const backend = options.backend ?? backendOf({ kind: 'simulated', driver }, opened);
  const node = await GpuNode.start({
    installation,
    backend,
    gpus: await takeInventory({ installation, backend, gpus: [], launcher: options.launcher }),
    logger: pino({ base: null }, { write: (line: string) => log.push(JSON.parse(line)) }),
    state: opened,
    arbitrated: false,
    ...options,
  });
  return { node, log };
}
