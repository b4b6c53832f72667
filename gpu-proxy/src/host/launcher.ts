import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Logger } from 'pino';
import type { HostNamespaces } from './host-namespaces.js';

/** A command line. */
export type Command = readonly [file: string, args: readonly string[]];

/** The pod of a worker's client. The worker runs in a cgroup beneath the pod's. */
export interface Tenant {
  readonly podUid: string;
  /** The client process in the pod. */
  readonly pid: number;
}

/**
 * A process that serves tenants: the arbiter, the MPS daemon or a keeper. Its memory use is small,
 * and its end affects programs, so it has the OOM score of gpu-proxy. A worker has the OOM score of
 * its client. It opens only the devices of a worker's room.
 */
type NodeService = 'node service';

/** A worker with or without a client. It sees only the files of the host that it needs. */
export interface ForProgram {
  /** Undefined: it has no client yet, or the client is not in a pod. */
  readonly tenant?: Tenant | undefined;
  /** Directory in which MPS listens. */
  readonly mpsPipes?: string | undefined;
}

/** CRIU, which writes a worker to files: in the room of that worker. */
export interface ForWriting extends ForCriu {
  /** Its pid. */
  readonly writes: number;
  /** Its user. Undefined: the user of gpu-proxy. */
  readonly uid: number | undefined;
}

/** CRIU, which makes a worker from files: in a room like that of the worker. */
export interface ForMaking extends ForProgram, ForCriu {
  /** The program of the worker. */
  readonly makes: string;
  /** Its cache, the only part of the allocations that the worker sees. Undefined: it sees none. */
  readonly cache: string | undefined;
}

/** CRIU, which examines the kernel. */
export interface ForCriu {
  /** Directory on the node in which it keeps what it finds. */
  readonly knows: string;
}

/** A short-lived process that prints an answer. */
export type Query = 'query';

/** A short-lived process whose memory stays in use, charged to the node and to no pod. */
export type NodeMemory = 'node memory';

type Purpose = ForCriu | ForProgram | ForWriting | ForMaking | NodeService | Query | NodeMemory;

/** Starts processes that outlive this one. */
export interface Launcher {
  /**
   * Directory of all allocations, as workers see it; undefined: workers see the files of this
   * process.
   */
  readonly allocations: string | undefined;
  /** Returns the command line that runs `file`. */
  command(file: string, args: readonly string[], purpose: Purpose): Command;
  /** Converts a path of such a process to a path of this process. */
  seen(file: string): string;
  /** Moves a running process to the pod of the tenant. */
  move(pid: number, tenant: Tenant): void;
  /** Whether workers that start or move from now on may open userfaultfd. */
  allowUserfaultfd(allowed: boolean): void;
}

/** Starts plain child processes. */
export const DIRECT: Launcher = {
  allocations: undefined,
  command: (file, args) => [file, args],
  seen: (file) => file,
  move: () => {},
  allowUserfaultfd: () => {},
};

/** Files that the workers of a node share. */
interface NodeFiles {
  /** Directory of all allocations. */
  readonly allocations: string;
  /** Sockets and files that workers open, or their directories. */
  readonly shared: readonly string[];
  /** The driver's library. */
  readonly driver: string;
}

/** The command line that runs a program of the host there, before the driver is known. */
export function queryOnHost(launcher: string, namespaces: HostNamespaces, file: string): Command {
  return [launcher, [...inNamespaces(namespaces), '--', file]];
}

function inNamespaces({ mounts, cgroups }: HostNamespaces): string[] {
  return ['--mounts', mounts, '--cgroups', cgroups];
}

interface HostLauncherOptions {
  /** native/launcher */
  readonly executable: string;
  readonly namespaces: HostNamespaces;
  /**
   * Directory on the host with the driver's libraries; undefined: the loader's default directories.
   */
  readonly libraries?: string | undefined;
  /** Directory on the host that they see as /dev; undefined: the host's /dev. */
  readonly devices?: string | undefined;
  readonly files: NodeFiles;
  readonly logger: Logger;
}

/** MPS and its clients share memory here. */
const SHARED_MEMORY = '/dev/shm';
/** Root opens it for a program: native/worker/session/session_start.cpp. */
const USERFAULTFD = '/dev/userfaultfd';

/**
 * Starts processes outside of this container: in the host's mount namespace, and workers in a
 * cgroup beneath their pod's.
 */
export class HostLauncher implements Launcher {
  readonly #executable: string;
  readonly #libraries: string | undefined;
  readonly #namespaces: HostNamespaces;
  /** Arguments that locate the driver's devices. */
  readonly #devices: readonly string[];
  /** Arguments that locate the driver. */
  readonly #driver: readonly string[];
  readonly #files: NodeFiles;
  readonly #logger: Logger;
  /**
   * Arguments for devices that only root may open. Pods have one filter for all their workers, and
   * so have workers without a pod: each launcher sets it to the devices of that moment.
   */
  #openable: readonly string[] = [];

  constructor({ executable, namespaces, libraries, devices, files, logger }: HostLauncherOptions) {
    this.#executable = executable;
    this.#namespaces = namespaces;
    this.#files = files;
    this.#libraries = libraries;
    this.#devices = given('--devices', devices);
    this.#driver = [...given('--libraries', libraries), ...this.#devices];
    this.#logger = logger;
  }

  get allocations(): string {
    return this.#files.allocations;
  }

  command(file: string, args: readonly string[], purpose: Purpose): Command {
    return [this.#executable, [...this.#way(file, purpose), ...this.#driver, '--', file, ...args]];
  }

  seen(file: string): string {
    return path.join(this.#namespaces.root, file);
  }

  move(pid: number, tenant: Tenant): void {
    execFile(
      this.#executable,
      [...this.#place(tenant), ...this.#devices, ...this.#openable, '--move', String(pid)],
      (error, _, said) => {
        if (error || said !== '')
          this.#logger.warn(
            { pid },
            `a worker was not moved into its pod completely: ${said.trim() || error?.message}`,
          );
      },
    );
  }

  allowUserfaultfd(allowed: boolean): void {
    this.#openable = allowed ? ['--open', USERFAULTFD] : [];
  }

  #way(file: string, purpose: Purpose): string[] {
    if (purpose === 'node service') return [...this.#place(undefined), '--serve', 'tenants'];
    if (purpose === 'query') return this.#place(undefined);
    if (purpose === 'node memory') return [...this.#place(undefined), '--charge', 'node'];
    if ('writes' in purpose) return this.#wayInto(purpose);
    if ('makes' in purpose)
      return [...this.#wayToRoom(purpose.makes, purpose), ...this.#making(purpose)];
    if ('knows' in purpose) return [...this.#place(undefined), '--kernel-data', purpose.knows];
    return this.#wayToRoom(file, purpose);
  }

  /** CRIU needs no right to ask for the limits of a process of its own real user. */
  #wayInto({ writes, uid = 0, knows }: ForWriting): string[] {
    const user = uid > 0 ? ['--real-user', String(uid)] : [];
    const into = ['--enter', String(writes), '--kernel-data', knows];
    return [...this.#place(undefined), ...this.#openable, ...into, ...user];
  }

  #making({ cache, knows }: ForMaking): string[] {
    return ['--hide', this.allocations, ...given('--show', cache), '--kernel-data', knows];
  }

  #wayToRoom(file: string, { tenant, mpsPipes }: ForProgram): string[] {
    const { allocations, shared, driver } = this.#files;
    const readable = [file, driver, ...(this.#libraries === undefined ? [] : [this.#libraries])];
    const writable = [
      allocations,
      ...shared,
      ...(mpsPipes === undefined ? [] : [mpsPipes, SHARED_MEMORY]),
    ];
    return [
      ...this.#place(tenant),
      ...this.#openable,
      ...readable.flatMap((each) => ['--read', each]),
      ...writable.flatMap((each) => ['--write', each]),
    ];
  }

  #place(tenant: Tenant | undefined): string[] {
    const pod =
      tenant && isInPod(tenant) ? ['--pod', tenant.podUid, '--client', String(tenant.pid)] : [];
    return [...inNamespaces(this.#namespaces), ...pod];
  }
}

function given(option: string, value: string | undefined): string[] {
  return value === undefined ? [] : [option, value];
}

/** False for pid 0: a client outside of this PID namespace. */
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
