import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

/** Any hierarchy will do: a pod is named in all of them. */
const HIERARCHIES = ['pids', 'cpuset', 'memory', 'freezer'].map((name) => `/sys/fs/cgroup/${name}`);
/** Where the second version is, beside the first or alone. */
const UNIFIED = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'];

/**
 * The kubelet's cgroup driver; systemd's is tried with the second version, with which it is usual.
 */
export type CgroupDriver = 'cgroupfs' | 'systemd';

/** cgroups as a kubelet makes them, in a corner of their own. */
export class PodCgroups {
  readonly #root: string;
  readonly #driver: CgroupDriver;
  readonly #parents: readonly string[];

  /** @param name of the corner */
  constructor(name: string, driver: CgroupDriver = 'cgroupfs') {
    this.#root = driver === 'systemd' ? `${name}.slice` : `kubepods-test-${name}`;
    this.#driver = driver;
    const unified = UNIFIED.find((directory) =>
      existsSync(path.join(directory, 'cgroup.controllers')),
    );
    const first = HIERARCHIES.filter((directory) => existsSync(directory));
    this.#parents =
      unified !== undefined && (driver === 'systemd' || first.length === 0) ? [unified] : first;
    for (const parent of this.#parents) make(path.join(parent, this.#root));
  }

  /** A new container of a pod: the files that its first process is to be written to. */
  container(podUid: string): { readonly id: string; readonly processFiles: readonly string[] } {
    const id = randomBytes(32).toString('hex');
    const name = this.#driver === 'systemd' ? `cri-containerd-${id}.scope` : id;
    const directories = this.pod(podUid).map((pod) => make(path.join(pod, name)));
    return {
      id,
      processFiles: directories.map((directory) => path.join(directory, 'cgroup.procs')),
    };
  }

  /** Where the cgroups of a pod are. */
  pod(podUid: string): string[] {
    return this.#parents.map((parent) => path.join(parent, this.#root, ...this.#podPath(podUid)));
  }

  /** A part of systemd's names has all those above it in it. */
  #podPath(podUid: string): string[] {
    if (this.#driver === 'cgroupfs') return ['besteffort', `pod${podUid}`];
    const slices = ['kubepods', 'burstable', `pod${podUid.replaceAll('-', '_')}`];
    const corner = path.basename(this.#root, '.slice');
    return slices.map((_, index) => `${[corner, ...slices.slice(0, index + 1)].join('-')}.slice`);
  }

  /** Waits for the last process in them to go. */
  async remove(): Promise<void> {
    for (const parent of this.#parents) await removeTree(path.join(parent, this.#root));
  }
}

/** A cgroup of the first version whose cpuset is empty takes no process. */
function make(directory: string): string {
  const missing: string[] = [];
  for (let one = directory; !existsSync(one); one = path.dirname(one)) missing.unshift(one);
  for (const one of missing) {
    mkdirSync(one);
    for (const file of ['cpuset.cpus', 'cpuset.mems']) copyFromParent(one, file);
  }
  return directory;
}

function copyFromParent(directory: string, file: string): void {
  if (!directory.startsWith('/sys/fs/cgroup/cpuset/')) return;
  writeFileSync(
    path.join(directory, file),
    readFileSync(path.join(path.dirname(directory), file), 'utf8'),
  );
}

async function removeTree(directory: string): Promise<void> {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) await removeTree(path.join(directory, entry.name));
  while (readFileSync(path.join(directory, 'cgroup.procs'), 'utf8') !== '')
    await new Promise((resolve) => setTimeout(resolve, 20));
  for (;;) {
    try {
      rmdirSync(directory);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
