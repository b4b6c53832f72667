import { statSync } from 'node:fs';
import path from 'node:path';
import type { V1Pod } from '@kubernetes/client-node';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { namesIn } from '@nvidia-virtual/service/files';
import type { Logger } from 'pino';
import type { Installation } from '../host/installation.js';
import type { GpuNode } from '../node.js';
import { eventReason, targetOf } from './binding.js';
import { ContainerProcesses } from './container-processes.js';
import type { Grants } from './grants.js';
import { readMaps } from './mapped-libraries.js';
import type { NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';
import { containerNamed } from './tenant.js';

interface ImageCheckOptions {
  readonly node: GpuNode;
  readonly grants: Pick<Grants, 'all'>;
  readonly pods: NodePods;
  readonly events: PodEvents;
  readonly installation: Pick<Installation, 'interposerDirectory' | 'versions'>;
  readonly logger: Logger;
  readonly lookEveryMs?: number;
}

const LOOK_EVERY_MS = 10_000;
/** Directories of a build with files that the device plugin mounts into containers. */
const MOUNTED = ['lib', 'container'];

/**
 * Finds images whose programs cannot load our libraries, and writes an event of the pod. Only pods
 * without a session are examined: such a program never connects. On a node where all pods use
 * their GPUs, this costs nothing.
 */
export class ImageCheck {
  readonly #options: ImageCheckOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #processes = new ContainerProcesses();
  /** Container and error code of each event, for as long as the pod is examined. */
  #told = new Set<string>();
  #looking = false;

  constructor(options: ImageCheckOptions) {
    this.#options = options;
    const every = options.lookEveryMs ?? LOOK_EVERY_MS;
    this.#timer = setInterval(() => void this.#look(), every).unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const pods = this.#silentPods();
      this.#told = new Set([...this.#told].filter((one) => pods.has(one.split(' ')[0] ?? '')));
      if (pods.size > 0) await this.#examine(pods);
    } catch (error) {
      this.#options.logger.error(`Images could not be examined: ${(error as Error).message}.`);
    } finally {
      this.#looking = false;
    }
  }

  /** UIDs of pods that have slots, and no session. */
  #silentPods(): Set<string> {
    const { node, grants } = this.#options;
    const silent = node.allocations.filter(({ sessionCount }) => sessionCount === 0);
    const owners = [
      ...grants.all.map(({ pod }) => pod),
      ...silent.map(({ specification }) => specification.owner),
    ];
    return new Set(owners.flatMap((owner) => owner?.podUid ?? []));
  }

  async #examine(uids: ReadonlySet<string>): Promise<void> {
    const ours = this.#ourInodes();
    for (const process of await this.#processes.some(uids)) {
      const pod = this.#options.pods.find(process.podUid);
      const container = pod && containerNamed(pod, process.containerId);
      if (!pod || container === undefined || !requestsSlots(pod, container)) continue;
      const found = await readMaps(process.pid).catch(() => undefined);
      if (!found || !(await this.#processes.isStill(process))) continue;
      const { driver, musl } = found;
      const foreign = [...driver.values()].find(({ inode }) => !ours.has(inode));
      if (foreign)
        this.#tell(pod, container, new ProxyError('LIBRARY_FOREIGN', { ...foreign, container }));
      else if (musl) this.#tell(pod, container, new ProxyError('LIBRARY_MUSL', { container }));
    }
  }

  /**
   * Inode numbers of our libraries in all builds, because containers keep theirs. Device numbers
   * are not compared: on btrfs and overlayfs, /proc/PID/maps and stat() differ in them.
   */
  #ourInodes(): Set<number> {
    const { interposerDirectory, versions } = this.#options.installation;
    const builds = versions === undefined ? [] : filesIn(versions);
    const directories = builds.flatMap((build) => MOUNTED.map((name) => path.join(build, name)));
    const files = [interposerDirectory, ...directories].flatMap(filesIn);
    return new Set(files.flatMap((file) => statSync(file, { throwIfNoEntry: false })?.ino ?? []));
  }

  /** Once for each container: a tenant has as many paths for the message as it likes. */
  #tell(pod: V1Pod, container: string, error: ProxyError): void {
    const target = targetOf(pod);
    const key = `${target.uid} ${container} ${error.code}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    const { events, logger } = this.#options;
    events.warn(target, eventReason(error.code), error.message);
    logger.warn({ pod: `${target.namespace}/${target.name}` }, error.message);
  }
}

function filesIn(directory: string): string[] {
  return namesIn(directory).map((name) => path.join(directory, name));
}

function requestsSlots({ spec }: V1Pod, name: string): boolean {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const limits = containers.find((one) => one.name === name)?.resources?.limits;
  return Number(limits?.[RESOURCE] ?? 0) > 0;
}
