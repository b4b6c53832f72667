import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { printable } from './printable.js';

/** A pid can be reused; pid and start time together are unique within a boot. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot. Undefined if the process had already exited. */
  readonly startTime: string | undefined;
}

export interface ProcessIdentity extends ProcessId {
  /** Printable: a tenant chooses the name. */
  readonly program: string;
}

/** Id of this boot of the machine. Pids and start times are valid within one boot. */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startTime: readStat(pid)?.startTime, program: programOf(pid) };
}

/**
 * False after the exit of the process, even while it is a zombie. A process whose first thread has
 * exited looks like a zombie, but goes on with its other threads.
 */
export function isAlive({ pid, startTime }: ProcessId): boolean {
  const stat = readStat(pid);
  if (stat === undefined || stat.startTime !== startTime) return false;
  return !['Z', 'X'].includes(stat.state) || stat.threads > 1;
}

/** Finds a process with these consecutive arguments on its command line. */
export function findProcess(...words: readonly string[]): ProcessIdentity | undefined {
  return findProcesses(...words)[0];
}

/**
 * Finds all of them. Processes of other pid namespaces are left out: a program in a container can
 * have any command line.
 */
export function findProcesses(...words: readonly string[]): ProcessIdentity[] {
  const wanted = `\0${words.join('\0')}\0`;
  const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return numbers
    .filter(
      (pid) =>
        readOrUndefined(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.includes(wanted) &&
        isInOwnNamespace(pid),
    )
    .map((pid) => identifyProcess(Number(pid)));
}

/**
 * Finds processes that were started with this NAME=value in their environment, with their command
 * lines. Processes whose environment this user cannot read are skipped.
 */
export function findProcessesWith(
  variable: string,
): { readonly identity: ProcessIdentity; readonly words: readonly string[] }[] {
  const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const list = (pid: string, file: string) =>
    readOrUndefined(() => readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.split('\0') ?? [];
  return numbers
    .filter((pid) => list(pid, 'environ').includes(variable))
    .map((pid) => ({
      identity: identifyProcess(Number(pid)),
      words: list(pid, 'cmdline').slice(0, -1),
    }))
    .filter(({ identity }) => isAlive(identity));
}

/**
 * Whether this directory is the root directory of the process. False for processes in containers.
 */
export function hasRoot({ pid }: ProcessIdentity, directory: string): boolean {
  const [own, wanted] = [`/proc/${pid}/root/`, directory].map((each) =>
    readOrUndefined(() => statSync(each)),
  );
  return own !== undefined && own.dev === wanted?.dev && own.ino === wanted.ino;
}

/**
 * Whether the real, effective, saved and file system user ids of a process all are this one.
 */
export function isOfUser({ pid }: ProcessIdentity, uid: number): boolean {
  const uids = statusField(pid, 'Uid');
  return uids.length > 0 && uids.every((each) => each === String(uid));
}

/** The process of a thread. Undefined if no thread has this id. */
export function processOf(thread: number): ProcessIdentity | undefined {
  const [pid] = statusField(thread, 'Tgid');
  return pid === undefined ? undefined : identifyProcess(Number(pid));
}

/** The effective user id of a process. Undefined if it has exited. */
export function userOf(pid: number): number | undefined {
  const [, effective] = statusField(pid, 'Uid');
  return effective === undefined ? undefined : Number(effective);
}

/**
 * The effective user ids between `first` and `last` that processes have, zombies too. Processes of
 * other pid namespaces, such as those of containers, are left out: they cannot reach the others.
 */
export function usersOfProcesses({ first, last }: { first: number; last: number }): Set<number> {
  const users = new Set<number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const uid = readOrUndefined(() => statSync(`/proc/${pid}`))?.uid;
    if (uid === undefined || uid < first || uid > last || users.has(uid)) continue;
    if (pidsOf(pid).length <= 1) users.add(uid);
  }
  return users;
}

/** The pid of a process in its own pid namespace, for example that of its container. */
export function innermostPid(pid: number): number {
  return Number(pidsOf(pid).at(-1) ?? pid);
}

/** Whether the process is in the pid namespace of this one. False for processes in containers. */
export function isInOwnNamespace(pid: number | string): boolean {
  return pidsOf(pid).length === 1;
}

/** In each pid namespace from that of this process on. Empty if it has exited. */
function pidsOf(pid: number | string): string[] {
  return statusField(pid, 'NSpid');
}

/** The words of a line of /proc/PID/status. Empty if the process has exited. */
function statusField(pid: number | string, name: string): string[] {
  const status = readOrUndefined(() => readFileSync(`/proc/${pid}/status`, 'utf8'));
  const line = status?.match(new RegExp(`^${name}:(.*)$`, 'm'))?.[1];
  return line?.trim().split(/\s+/) ?? [];
}

/**
 * Whether a terminal sends Ctrl-C to this process itself, because it is in the terminal's
 * foreground group.
 */
export function isInForeground(pid: number | 'self' = 'self'): boolean {
  const stat = readStat(pid);
  return stat !== undefined && stat.foregroundGroup === stat.group;
}

interface Stat {
  readonly state: string;
  readonly group: string;
  readonly foregroundGroup: string;
  /** The first one counts until the end of the others. */
  readonly threads: number;
  readonly startTime: string;
}

function readStat(pid: number | 'self'): Stat | undefined {
  const line = readOrUndefined(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (line === undefined) return undefined;
  // The name in parentheses may contain any characters, so count fields from the last
  // parenthesis. The first one after it is field 3, the state.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => fields[number - 3] ?? '';
  return {
    ...{ state: field(3), group: field(5), foregroundGroup: field(8) },
    ...{ threads: Number(field(20)), startTime: field(22) },
  };
}

function programOf(pid: number): string {
  return printable(
    readOrUndefined(() => readlinkSync(`/proc/${pid}/exe`)) ??
      readOrUndefined(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) ??
      'unknown',
  );
}

function readOrUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
