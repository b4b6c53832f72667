import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Logger } from 'pino';
import type { HostNamespaces } from './host-namespaces.js';

/** A command line. */
export type Command = readonly [file: string, args: readonly string[]];

/** For whom a worker works: it lives among the processes of the pod. */
export interface Tenant {
  readonly podUid: string;
  /** The program, which is in the pod. */
  readonly pid: number;
}

/**
 * A process that serves all tenants and works for none, as the arbiter and the MPS daemon do. Little can make it grow and its end is felt by
 * every program of its GPU, so that the kernel ends it as late as gpu-proxy itself when memory runs out. A worker has what its program has.
 */
export type NodeService = 'node service';

/** How processes are started that are to outlive this one. */
export interface Launcher {
  /** The command that becomes this one. By default it is a worker that works for nobody yet. */
  command(file: string, args: readonly string[], purpose?: Tenant | NodeService): Command;
  /** Where a file that such a process would open by this name is seen from here. */
  seen(file: string): string;
  /** Puts one that runs already where it would have been started. */
  move(pid: number, tenant: Tenant): void;
}

/** As children, where this process is. */
export const DIRECT: Launcher = { command: (file, args) => [file, args], seen: (file) => file, move: () => {} };

export interface HostLauncherOptions {
  /** native/launcher */
  readonly executable: string;
  readonly namespaces: HostNamespaces;
  /** Directory on the host where the driver finds its parts; undefined: where the host's loader looks. */
  readonly libraries?: string | undefined;
  /** Directory on the host that they see as /dev; undefined: its own. */
  readonly devices?: string | undefined;
  readonly logger: Logger;
}

/** Outside of the container of this process: among the host's mounts, and in a cgroup beneath the pod's. */
export class HostLauncher implements Launcher {
  readonly #executable: string;
  readonly #namespaces: HostNamespaces;
  /** Where the driver is. */
  readonly #driver: readonly string[];
  readonly #logger: Logger;

  constructor({ executable, namespaces, libraries, devices, logger }: HostLauncherOptions) {
    this.#executable = executable;
    this.#namespaces = namespaces;
    this.#driver = [...given('--libraries', libraries), ...given('--devices', devices)];
    this.#logger = logger;
  }

  command(file: string, args: readonly string[], purpose?: Tenant | NodeService): Command {
    const place = purpose === 'node service' ? [...this.#place(undefined), '--oom-score', 'keep'] : this.#place(purpose);
    return [this.#executable, [...place, ...this.#driver, '--', file, ...args]];
  }

  seen(file: string): string {
    return path.join(this.#namespaces.root, file);
  }

  move(pid: number, tenant: Tenant): void {
    execFile(this.#executable, [...this.#place(tenant), '--move', String(pid)], (error, _, said) => {
      if (error || said !== '') this.#logger.warn({ pid }, `a worker was not given to its pod in full: ${said.trim() || error?.message}`);
    });
  }

  #place(tenant: Tenant | undefined): string[] {
    const pod = tenant && isInPod(tenant) ? ['--pod', tenant.podUid, '--client', String(tenant.pid)] : [];
    return ['--mounts', this.#namespaces.mounts, '--cgroups', this.#namespaces.cgroups, ...pod];
  }
}

function given(option: string, value: string | undefined): string[] {
  return value === undefined ? [] : [option, value];
}

/** A program whose pid is not seen from here has 0. */
function isInPod({ pid, podUid }: Tenant): boolean {
  return pid > 0 && /^[0-9a-f-]+$/.test(podUid) && readable(`/proc/${pid}/cgroup`);
}

function readable(file: string): boolean {
  try {
    readFileSync(file);
    return true;
  } catch {
    return false;
  }
}
