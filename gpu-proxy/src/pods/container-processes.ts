import { readdir, readFile } from 'node:fs/promises';
import { type ContainerIdentity, parseCgroup } from './cgroup.js';

interface ContainerProcess extends ContainerIdentity {
  readonly pid: number;
}

/** Limit on processes of a container that are examined at a time. */
const MOST_PROCESSES = 16;

/** The processes in containers of pods, a few at a time. */
export class ContainerProcesses {
  readonly #proc: string;
  /** Counts calls of some(). */
  #turn = 0;

  /** @param proc the directory of processes */
  constructor(proc = '/proc') {
    this.#proc = proc;
  }

  /**
   * Processes in containers of these pods, at most 16 of each container. Later calls return its
   * next ones: helpers of a program may have all the lowest pids.
   */
  async some(podUids: ReadonlySet<string>): Promise<ContainerProcess[]> {
    const init = await this.#cgroupOf(1);
    const found = new Map<string, ContainerProcess[]>();
    for (const name of await readdir(this.#proc)) {
      if (!/^\d+$/.test(name)) continue;
      const identity = parseCgroup(await this.#cgroupOf(Number(name)), init);
      if (identity?.containerId === undefined || !podUids.has(identity.podUid)) continue;
      const list = found.get(identity.containerId) ?? [];
      found.set(identity.containerId, list);
      list.push({ ...identity, pid: Number(name) });
    }
    const turn = this.#turn++;
    return [...found.values()].flatMap((list) => partOf(list, turn));
  }

  /** Whether the pid is still one of the same container: it may have been reused. */
  async isStill({ pid, containerId }: ContainerProcess): Promise<boolean> {
    const now = parseCgroup(await this.#cgroupOf(pid), await this.#cgroupOf(1));
    return now?.containerId === containerId;
  }

  /** Empty if the process has ended. */
  #cgroupOf(pid: number): Promise<string> {
    return readFile(`${this.#proc}/${pid}/cgroup`, 'utf8').catch(() => '');
  }
}

/** Parts are as long as the limit; they take turns. */
function partOf<Item>(list: readonly Item[], turn: number): Item[] {
  const parts = Math.max(1, Math.ceil(list.length / MOST_PROCESSES));
  const first = (turn % parts) * MOST_PROCESSES;
  return list.slice(first, first + MOST_PROCESSES);
}
