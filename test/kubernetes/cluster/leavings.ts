import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { PATIENCE_MS, pause, processesWith } from '../../processes.js';
import { removeNetwork } from './network.js';
import {
  CONTAINERD_SOCKET,
  CONTAINERD_STATE,
  KUBELET_ROOT,
  MARK,
  NODE_DIRECTORY,
  STATE_ROOT,
} from './places.js';

const OURS = [NODE_DIRECTORY, KUBELET_ROOT, STATE_ROOT];
/** A NODE_DIRECTORY that is being removed. Its 10,000 files take a slow disk half a minute. */
const REMOVED = `${NODE_DIRECTORY}.removed`;
/** Further directories of containerd and its network plugin. */
const RUNTIME_FILES = ['/run/nvidia-virtual-test-node', CONTAINERD_STATE];
const LOG_LINKS = '/var/log/containers';
const CGROUPS = '/sys/fs/cgroup';
/** The kubelet's cgroups at the root of each controller. */
const POD_CGROUPS = 'kubepods';

/** Marks this machine's directories as the test's. @throws Error if another kubelet used them */
export function claimNode(): void {
  for (const directory of OURS) {
    const foreign =
      existsSync(directory) &&
      readdirSync(directory).length > 0 &&
      !existsSync(path.join(directory, MARK));
    if (foreign)
      throw new Error(
        `${directory} is there and no test made it: this machine is a node already, ` +
          'or was one. Run this elsewhere.',
      );
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, MARK), '');
  }
}

/**
 * Removes everything of a test's node: after a run, and before one, because the last may have been
 * killed. Files of images are removed in the background, also after the end of this process.
 */
export async function sweepNode(): Promise<void> {
  if (!OURS.some((directory) => existsSync(path.join(directory, MARK)))) return;
  await loseMemory();
  removeNetwork();
  removeLogLinks();
  const remove = ['-rf', REMOVED];
  await runCommand('rm', remove);
  for (const directory of OURS) refuseMounts(directory);
  if (existsSync(NODE_DIRECTORY)) renameSync(NODE_DIRECTORY, REMOVED);
  for (const directory of OURS) removeDirectory(directory);
  spawn('rm', remove, { detached: true, stdio: 'ignore' }).unref();
}

/**
 * Removes what a machine loses without power. The bridge stays, because the API server listens on
 * its address.
 */
export async function loseMemory(): Promise<void> {
  // The pods first: a gpu-proxy replaces its arbiter. Then what outlived its parent, also in an
  // earlier run: shims without a containerd, and workers without a gpu-proxy.
  await endProcesses('of pods', () => podCgroups().flatMap(processesOf));
  for (const text of [CONTAINERD_SOCKET, `${STATE_ROOT}/versions/`])
    await endProcesses(`with ${text}`, () => processesWith(text));
  unmountAll();
  removeCgroups();
  for (const directory of RUNTIME_FILES) removeDirectory(directory);
}

/** Kills again and again, because a process may have been replaced. @throws Error if some stay */
async function endProcesses(which: string, find: () => number[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const pids = new Set(find());
    if (pids.size === 0) return;
    if (performance.now() > deadline)
      throw new Error(`processes ${which} do not end: ${[...pids].join(', ')}`);
    for (const pid of pids) end(pid);
    await pause(50);
  }
}

/** Deepest first. */
function unmountAll(): void {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const points = mounts.map((line) => (line.split(' ')[1] ?? '').replaceAll('\\040', ' '));
  // The kubelet mounts its own directory onto itself.
  const isOurs = (point: string) =>
    OURS.some((directory) => point === directory || point.startsWith(`${directory}/`));
  const ours = points.filter((point) => isOurs(point) || /^\/run\/netns\/cni-/.test(point));
  for (const point of ours.reverse()) execFileSync('umount', ['--lazy', point]);
}

function removeCgroups(): void {
  for (const directory of podCgroups().reverse()) {
    try {
      rmdirSync(directory);
    } catch {
      // its processes are still ending; the next run removes it
    }
  }
}

/** Each before its children. */
function podCgroups(): string[] {
  const controllers = existsSync(path.join(CGROUPS, 'cgroup.controllers'))
    ? ['']
    : readdirSync(CGROUPS);
  const roots = controllers
    .map((controller) => path.join(CGROUPS, controller, POD_CGROUPS))
    .filter((root) => existsSync(root));
  return roots.flatMap(descend);
}

function descend(directory: string): string[] {
  const inside = directoriesIn(directory);
  return [directory, ...inside.flatMap((name) => descend(path.join(directory, name)))];
}

function directoriesIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return []; // removed meanwhile, by a runtime that was killed
  }
}

function processesOf(cgroup: string): number[] {
  try {
    return readFileSync(path.join(cgroup, 'cgroup.procs'), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return []; // removed meanwhile
  }
}

/** The kubelet creates them beside its logs. */
function removeLogLinks(): void {
  if (!existsSync(LOG_LINKS)) return;
  const links = readdirSync(LOG_LINKS).map((name) => path.join(LOG_LINKS, name));
  for (const link of links) if (readlinkSync(link).startsWith(NODE_DIRECTORY)) unlinkSync(link);
}

function removeDirectory(directory: string): void {
  refuseMounts(directory);
  rmSync(directory, { recursive: true, force: true });
}

/** A mount there belongs to another program, so nothing below a mount is removed. */
function refuseMounts(directory: string): void {
  const mounts = readFileSync('/proc/self/mounts', 'utf8');
  if (mounts.includes(` ${directory}/`) || mounts.includes(` ${directory} `))
    throw new Error(`something is still mounted in ${directory}`);
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
