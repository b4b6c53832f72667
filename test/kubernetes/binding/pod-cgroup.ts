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
import { eventually } from '@nvidia-virtual/service/testing/eventually';

/** A pod has a cgroup in each of these hierarchies; any of them is sufficient. */
const HIERARCHIES = ['pids', 'cpuset', 'memory', 'freezer'].map((name) => `/sys/fs/cgroup/${name}`);
/** Mount points of cgroup version 2, beside version 1 or alone. */
const UNIFIED = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'];

/** The kubelet's cgroup driver. systemd's is tested with version 2, its usual environment. */
export type CgroupDriver = 'cgroupfs' | 'systemd';

/** Cgroups as created by a kubelet, below a separate root. */
export class PodCgroups {
  readonly #root: string;
  readonly #driver: CgroupDriver;
  readonly #parents: readonly string[];

  /** @param name of the root, which is one of this process */
  constructor(name: string, driver: CgroupDriver = 'cgroupfs') {
    const own = `${name}${process.pid}`;
    this.#root = driver === 'systemd' ? `${own}.slice` : `kubepods-test-${own}`;
    this.#driver = driver;
    const unified = UNIFIED.find((directory) =>
      existsSync(path.join(directory, 'cgroup.controllers')),
    );
    const first = HIERARCHIES.filter((directory) => existsSync(directory));
    this.#parents =
      unified !== undefined && (driver === 'systemd' || first.length === 0) ? [unified] : first;
    for (const parent of this.#parents) make(path.join(parent, this.#root));
  }

  /**
   * Creates a container of a pod. @returns the files to which the pid of its first process is
   * written
   */
  container(podUid: string): { readonly id: string; readonly processFiles: readonly string[] } {
    const id = randomBytes(32).toString('hex');
    const name = this.#driver === 'systemd' ? `cri-containerd-${id}.scope` : id;
    const directories = this.pod(podUid).map((pod) => make(path.join(pod, name)));
    return {
      id,
      processFiles: directories.map((directory) => path.join(directory, 'cgroup.procs')),
    };
  }

  /** The cgroup directories of a pod. */
  pod(podUid: string): string[] {
    return this.#parents.map((parent) => path.join(parent, this.#root, ...this.#podPath(podUid)));
  }

  /** The name of a systemd slice contains the names of all its parents. */
  #podPath(podUid: string): string[] {
    if (this.#driver === 'cgroupfs') return ['besteffort', `pod${podUid}`];
    const slices = ['kubepods', 'burstable', `pod${podUid.replaceAll('-', '_')}`];
    const corner = path.basename(this.#root, '.slice');
    return slices.map((_, index) => `${[corner, ...slices.slice(0, index + 1)].join('-')}.slice`);
  }

  /** Waits until no process is left in them. */
  async remove(): Promise<void> {
    for (const parent of this.#parents) await removeTree(path.join(parent, this.#root));
  }
}

/** A cgroup of version 1 with an empty cpuset accepts no process. */
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
  await eventually(() => rmdirSync(directory));
}
