import { rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { containersOf } from '@nvidia-virtual/kubernetes/pod-request';
import { ProxyError } from '../errors.js';
import { targetOf } from './binding.js';
import type { NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';

/** In the state directory: last changed when a gpu-proxy was there last. */
export const PRESENCE = 'presence';
const RENEW_EVERY_MS = 5000;
/** How long a program in a container waits for gpu-proxy (interposer/session.cpp). */
const PROGRAMS_WAIT_MS = 30_000;

/** Why a container ended that ended itself; what a boot of the machine, or a lack of memory, ended has another reason. */
const FAILED = 'Error';

/**
 * Programs that began to use CUDA while no gpu-proxy was there got no GPU, and nobody could tell their pods. The next gpu-proxy cannot know which
 * these were, but it knows when none was there, and which containers failed then.
 */
export class Absence {
  readonly #file: string;
  /** In milliseconds; undefined: there was no gpu-proxy before. */
  readonly #since: number | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #until = Date.now();

  /** It is over now. */
  constructor(state: string) {
    this.#file = path.join(state, PRESENCE);
    this.#since = statSync(this.#file, { throwIfNoEntry: false })?.mtimeMs;
    this.#renew();
    this.#timer = setInterval(() => this.#renew(), RENEW_EVERY_MS).unref();
  }

  /** Tells the pods, once they are known: the first that changes is that they are. */
  tell(pods: NodePods, events: PodEvents): void {
    pods.once('changed', () => {
      for (const pod of pods.all) for (const { message } of this.#suspicionsOf(pod)) events.warn(targetOf(pod), 'GpuNotAvailable', message);
    });
  }

  /** The next gpu-proxy counts from here. */
  end(): void {
    clearInterval(this.#timer);
    this.#renew();
  }

  #suspicionsOf(pod: V1Pod): ProxyError[] {
    if (pod.metadata?.deletionTimestamp) return [];
    const asking = new Set(containersOf(pod).flatMap(({ container, slots }) => (slots > 0 ? [container] : [])));
    const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
    return statuses.flatMap((status) => {
      const exitCode = asking.has(status.name) ? this.#failedMeanwhile(status) : undefined;
      return exitCode === undefined ? [] : [this.#suspicion(status.name, exitCode)];
    });
  }

  #failedMeanwhile({ state, lastState }: V1ContainerStatus): number | undefined {
    const { exitCode = 0, reason, finishedAt } = state?.terminated ?? lastState?.terminated ?? {};
    if (exitCode === 0 || reason !== FAILED || finishedAt === undefined || this.#since === undefined) return undefined;
    const ended = new Date(finishedAt).getTime();
    return ended >= this.#since + PROGRAMS_WAIT_MS && ended <= this.#until ? exitCode : undefined;
  }

  #suspicion(container: string, status: number): ProxyError {
    const since = new Date(this.#since ?? this.#until).toISOString();
    return new ProxyError('PROXY_WAS_AWAY', { since, until: new Date(this.#until).toISOString(), container, status });
  }

  /** A node goes on without: then the next one tells nobody. */
  #renew(): void {
    try {
      writeFileSync(this.#file, '');
    } catch {
      removeIfPossible(this.#file);
    }
  }
}

function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {}
}
