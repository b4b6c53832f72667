import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmdirSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { namesIn, readIfThere } from '@nvidia-virtual/service/files';
import { printable } from '@nvidia-virtual/service/printable';
import {
  identifyProcess,
  isAlive,
  isInOwnNamespace,
  type ProcessIdentity,
} from '@nvidia-virtual/service/process-table';
import { whyNotServed } from '@nvidia-virtual/service/socket';
import { ENDPOINT_NAME } from './endpoint.js';
import { PluginError } from './errors.js';

interface RemovalOptions {
  /**
   * Path of the host's root directory here. Requires the host's PID namespace.
   */
  readonly host: string;
  /** Path on the host of the directory with all our files. */
  readonly directory: string;
  /** Path on the host. */
  readonly kubeletRoot: string;
  /**
   * Name of the cgroup, at the root of each hierarchy, of processes without a pod. The names of
   * others start with it.
   */
  readonly cgroup: string;
  /** Timeout in milliseconds for the exit of device plugin, gpu-proxy and their processes. */
  readonly patience: number;
  /** Additional check for components that still serve this node. */
  readonly whoElse?: () => Promise<string | undefined>;
}

const PAUSE_MS = 200;
/** Ends of their names: native/launcher/cgroup.cpp. */
const CGROUPS = ['', '-workers', '-services'];
/** Bytes of a command line that a message names. */
const LONGEST_COMMAND = 200;

/**
 * Terminates processes that device plugin and gpu-proxy started on this node, and removes their
 * files, after an uninstall. Waits until both are gone, because they would restart the processes.
 * @throws PluginError NODE_STILL_SERVED, PROCESSES_LEFT, MOUNTS_LEFT, CGROUP_IN_USE
 */
export async function removeFromNode(options: RemovalOptions): Promise<void> {
  const { host, directory, kubeletRoot, patience } = options;
  const sockets = path.join(host, kubeletRoot, 'device-plugins');
  await until(
    patience,
    async () => (await whoServes(options, sockets)) ?? options.whoElse?.(),
    (who) => new PluginError('NODE_STILL_SERVED', { directory, who }),
  );
  refuseMounts(options);
  const ended = () => {
    const left = findOurs(directory);
    for (const { pid } of left) kill(pid);
    return left.length === 0
      ? undefined
      : left.map(({ pid, program }) => `${program} (process ${pid})`).join(', ');
  };
  await until(
    patience,
    async () => ended(),
    (processes) => new PluginError('PROCESSES_LEFT', { directory, processes }),
  );
  for (const name of namesIn(sockets).filter((entry) => ENDPOINT_NAME.test(entry)))
    rmSync(path.join(sockets, name), { force: true });
  rmSync(path.join(host, directory), { recursive: true, force: true });
  await removeCgroups(options);
}

/** Polls until the answer is undefined. */
async function until(
  patience: number,
  ask: () => Promise<string | undefined>,
  failure: (answer: string) => PluginError,
): Promise<void> {
  const end = performance.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer === undefined) return;
    if (performance.now() > end) throw failure(answer);
    await sleep(PAUSE_MS);
  }
}

/** gpu-proxy holds the lock of its state directory, and the device plugin serves a socket. */
async function whoServes(
  { host, directory }: RemovalOptions,
  sockets: string,
): Promise<string | undefined> {
  const [pid, startTime] = (readIfThere(path.join(host, directory, 'state', 'lock')) ?? '')
    .trim()
    .split(' ');
  if (startTime !== undefined && isAlive({ pid: Number(pid), startTime }))
    return `gpu-proxy, process ${pid},`;
  for (const name of namesIn(sockets).filter((entry) => ENDPOINT_NAME.test(entry)))
    if ((await whyNotServed(path.join(sockets, name))) === undefined)
      return `the device plugin at ${name}`;
  return undefined;
}

interface Mount {
  readonly point: string;
  readonly type: string;
}

function mountsOf(host: string): Mount[] {
  const lines = readFileSync(host === '/' ? '/proc/self/mounts' : '/proc/1/mounts', 'utf8').split(
    '\n',
  );
  return lines.map((line) => line.split(' ')).map(([, point = '', type = '']) => ({ point, type }));
}

/** Removes the cgroups, if they exist, as soon as the processes that were killed have left them. */
async function removeCgroups({ host, cgroup, patience }: RemovalOptions): Promise<void> {
  const hierarchies = mountsOf(host).filter(({ type }) => type === 'cgroup' || type === 'cgroup2');
  for (const { point } of hierarchies)
    for (const part of CGROUPS) {
      const directory = path.join(host, point, `${cgroup}${part}`);
      await until(
        patience,
        async () => (existsSync(directory) ? removeCgroup(directory) : undefined),
        (processes) => new PluginError('CGROUP_IN_USE', { cgroup: directory, processes }),
      );
    }
}

/** @returns the processes that keep the cgroup, if it could not be removed */
function removeCgroup(directory: string): string | undefined {
  try {
    rmdirSync(directory);
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    const processes = (readIfThere(path.join(directory, 'cgroup.procs')) ?? '').match(/\d+/g) ?? [];
    const named = processes.map((pid) => `process ${pid} (${commandOf(pid)})`);
    return named.join(', ') || 'other cgroups';
  }
}

function commandOf(pid: string): string {
  const words = readStart(`/proc/${pid}/cmdline`).split('\0').join(' ').trim();
  return printable(words) || identifyProcess(Number(pid)).program;
}

/** The first bytes of a file that a tenant can make long. Empty if it cannot be read. */
function readStart(file: string): string {
  const buffer = Buffer.alloc(LONGEST_COMMAND);
  try {
    const descriptor = openSync(file, 'r');
    try {
      return buffer.toString('utf8', 0, readSync(descriptor, buffer));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return '';
  }
}

/** Refuses to remove a directory with mounts, because their content is not ours. */
function refuseMounts({ host, directory }: RemovalOptions): void {
  const mounts = mountsOf(host).flatMap(({ point }) =>
    point.startsWith(`${directory}/`) ? point : [],
  );
  if (mounts.length > 0)
    throw new PluginError('MOUNTS_LEFT', { directory, mounts: mounts.join(', ') });
}

/**
 * Finds our processes: the executables of workers and arbiter are in our directory; MPS is NVIDIA's
 * program but has its pipes there. Processes in containers may look like them, and are left out.
 */
function findOurs(directory: string): ProcessIdentity[] {
  const numbers = namesIn('/proc').filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
  );
  return numbers
    .filter((pid) => isInOwnNamespace(pid) && isOurs(pid, directory))
    .map((pid) => identifyProcess(Number(pid)));
}

function isOurs(pid: string, directory: string): boolean {
  try {
    if (readlinkSync(`/proc/${pid}/exe`).startsWith(`${directory}/versions/`)) return true;
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(
      `CUDA_MPS_PIPE_DIRECTORY=${directory}/`,
    );
  } catch {
    // It has exited, or it is a kernel thread.
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
