import { setTimeout as sleep } from 'node:timers/promises';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { explainForbidden, PluginError } from './errors.js';
import type { PodObject } from './pod-object.js';
import type { UsageClient } from './usage-client.js';

interface SuspensionOptions {
  readonly pod: Pick<PodObject, 'read' | 'annotate'>;
  readonly client: Pick<UsageClient, 'pod'>;
  readonly namespace: string;
  readonly name: string;
  /** Time for the node to follow, in milliseconds. 0: it is not waited for. */
  readonly timeoutMs: number;
  readonly pauseMs?: number;
}

/** The wanted change of a pod. */
interface Change {
  /** The annotation's value. */
  readonly value: string | undefined;
  readonly changed: 'suspended' | 'resumed';
  done(pod: PodGpuUsage): boolean;
}

const PAUSE_MS = 500;
const SUSPEND: Change = { value: 'true', changed: 'suspended', done: isSuspended };
const RESUME: Change = { value: undefined, changed: 'resumed', done: isResumed };

/** Suspends or resumes a pod by its annotation, and waits until its node has done that. */
export class Suspension {
  readonly #options: SuspensionOptions;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  /** @returns a sentence. @throws PluginError, KubectlError; then the annotation is as before */
  async suspend(): Promise<string> {
    const { name, namespace } = this.#options;
    const pod = await this.#change(SUSPEND, await this.#read());
    if (!pod) return `The node of ${name} is told to suspend it.`;
    return pod.state === 'Suspended'
      ? `${name} is suspended: its CUDA calls wait until ` +
          `\`kubectl gpu-usage resume ${name} -n ${namespace}\`.`
      : `${name} does not run yet: its first CUDA call will wait.`;
  }

  /** @returns a sentence. @throws PluginError, KubectlError; then the annotation is as before */
  async resume(): Promise<string> {
    const { name, namespace } = this.#options;
    const before = await this.#read();
    const { node = '', containers } = before;
    if (containers.some(({ suspendedBy = [] }) => suspendedBy.includes('node')))
      throw new PluginError('SUSPENDED_BY_NODE', { namespace, name, node });
    const pod = await this.#change(RESUME, before);
    return pod ? `${name} is resumed.` : `The node of ${name} is told to resume it.`;
  }

  /** @returns undefined if the node is not waited for */
  async #change(change: Change, { podUid }: PodGpuUsage): Promise<PodGpuUsage | undefined> {
    const former = await this.#annotation();
    if (former !== change.value) await this.#write(podUid, change.value);
    if (this.#options.timeoutMs === 0) return undefined;
    try {
      return await this.#wait(podUid, change.done);
    } catch (error) {
      if (error instanceof PluginError && error.code === 'NO_SUCH_POD') throw error;
      const { namespace, name } = this.#options;
      const { changed, value } = change;
      const reason = (error as Error).message;
      const rest = await this.#undo(podUid, former, value);
      throw new PluginError('SUSPENSION_FAILED', { namespace, name, changed, reason, rest });
    }
  }

  /** @throws Error with the reason, if the pod is not as wanted in time */
  async #wait(podUid: string, done: Change['done']): Promise<PodGpuUsage> {
    const { timeoutMs, pauseMs = PAUSE_MS } = this.#options;
    const end = performance.now() + timeoutMs;
    for (;;) {
      const pod = await this.#read();
      if (pod.podUid === podUid && done(pod)) return pod;
      if (performance.now() + pauseMs > end)
        throw new Error(pod.message ?? `node ${pod.node} has not reported that in time.`);
      await sleep(pauseMs);
    }
  }

  /** @returns what has become of the annotation, as a sentence */
  async #undo(uid: string, former: string | undefined, value: string | undefined): Promise<string> {
    if (former === value) return 'Its annotation was there before, and stays.';
    try {
      await this.#write(uid, former);
      return 'Its annotation was changed back.';
    } catch (error) {
      return `Its annotation could not be changed back: ${(error as Error).message}`;
    }
  }

  #read(): Promise<PodGpuUsage> {
    const { client, namespace, name } = this.#options;
    return client.pod(namespace, name);
  }

  async #annotation(): Promise<string | undefined> {
    const { metadata } = await this.#options.pod.read().catch(rejected);
    return metadata?.annotations?.[ANNOTATION.suspended];
  }

  async #write(uid: string, value: string | undefined): Promise<void> {
    await this.#options.pod.annotate(uid, ANNOTATION.suspended, value).catch(rejected);
  }
}

function rejected(error: unknown): never {
  throw explainForbidden(error, 'SUSPENSION_FORBIDDEN');
}

/** A container that has not used its GPU yet has no allocation. */
function isUnused({ containers }: PodGpuUsage): boolean {
  return containers.every(({ time }) => time.busySeconds === undefined);
}

function isSuspended(pod: PodGpuUsage): boolean {
  const { state } = pod;
  return state === 'Suspended' || (isUnused(pod) && (state === 'Waiting' || state === 'Starting'));
}

function isResumed({ state, containers }: PodGpuUsage): boolean {
  return (
    state !== 'Suspended' &&
    state !== 'Unknown' &&
    !containers.some(({ suspendedBy = [] }) => suspendedBy.includes('pod'))
  );
}
