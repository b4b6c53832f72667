import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { assignmentOf, onlyGpu } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { explainForbidden, PluginError } from './errors.js';
import { findGpu } from './node-gpu.js';
import type { PodObject } from './pod-object.js';
import type { UsageClient } from './usage-client.js';

interface MoveOptions {
  readonly pod: Pick<PodObject, 'read' | 'annotate' | 'latestEvent'>;
  readonly client: Pick<UsageClient, 'pod' | 'node'>;
  readonly namespace: string;
  readonly name: string;
  /** Index or UUID. */
  readonly gpu: string;
  /** Time for the move, in milliseconds. 0: it is not waited for. */
  readonly timeoutMs: number;
  readonly pauseMs?: number;
}

const PAUSE_MS = 500;

/** Moves a pod to another GPU of its node by its annotation, and waits until it is there. */
export class Move {
  readonly #options: MoveOptions;

  constructor(options: MoveOptions) {
    this.#options = options;
  }

  /** @returns a sentence. @throws PluginError, KubectlError; then the pod stays, or goes back */
  async run(): Promise<string> {
    const { client, namespace, name, gpu, timeoutMs } = this.#options;
    const { podUid, node } = await client.pod(namespace, name);
    if (node === undefined) throw new PluginError('MOVE_UNPLACED', { namespace, name });
    const uuid = /^\d+$/.test(gpu) ? await this.#uuidOf(node) : gpu;
    const before = (await this.#read()).metadata?.annotations?.[ANNOTATION.moveTo];
    await this.#write(podUid, uuid);
    if (timeoutMs === 0) return `The scheduler is told to move ${name} to GPU ${gpu} of ${node}.`;
    try {
      await this.#wait(podUid, uuid);
      return `${name} is on GPU ${gpu} of node ${node} now, and its programs go on there.`;
    } catch (error) {
      const reason = (error as Error).message;
      const rest = await this.#undo(podUid, before);
      throw new PluginError('MOVE_FAILED', { namespace, name, gpu, node, reason, rest });
    }
  }

  async #uuidOf(node: string): Promise<string> {
    const { client, gpu } = this.#options;
    return findGpu(client, node, gpu).catch((error: unknown) => {
      if (error instanceof PluginError && error.code === 'FORBIDDEN')
        throw new PluginError('MOVE_INDEX', { node, gpu });
      throw error;
    });
  }

  /** @throws Error with the reason, if the pod is not there in time */
  async #wait(uid: string, uuid: string): Promise<void> {
    const { timeoutMs, pauseMs = PAUSE_MS } = this.#options;
    const end = performance.now() + timeoutMs;
    for (;;) {
      const pod = await this.#read();
      if (pod.metadata?.uid !== uid) throw new Error('it was deleted.');
      if (isOn(pod, uuid)) return;
      if (performance.now() + pauseMs > end) throw new Error(await this.#reason(uid));
      await sleep(pauseMs);
    }
  }

  async #reason(uid: string): Promise<string> {
    const message = await this.#options.pod.latestEvent(uid, 'GpuNotMoved');
    return message ?? 'it has not arrived in time.';
  }

  /**
   * The scheduler begins nothing by an annotation that has changed meanwhile.
   * @returns what becomes of the pod, as a sentence
   */
  async #undo(uid: string, before: string | undefined): Promise<string> {
    try {
      await this.#write(uid, before);
      const { former } = assignmentOf(await this.#read()) ?? {};
      if (former === undefined) return 'Its annotation was changed back.';
      await this.#write(uid, former);
      return `It goes back to GPU ${former}.`;
    } catch (error) {
      return `Its annotation could not be changed back: ${(error as Error).message}`;
    }
  }

  #read(): Promise<Pick<V1Pod, 'metadata'>> {
    return this.#options.pod.read().catch(rejected);
  }

  #write(uid: string, value: string | undefined): Promise<void> {
    return this.#options.pod.annotate(uid, ANNOTATION.moveTo, value).catch(rejected);
  }
}

/** The scheduler removes the annotation when all programs are there. */
function isOn(pod: Pick<V1Pod, 'metadata'>, uuid: string): boolean {
  const assignment = assignmentOf(pod);
  return (
    pod.metadata?.annotations?.[ANNOTATION.moveTo] === undefined &&
    assignment !== undefined &&
    assignment.former === undefined &&
    onlyGpu(assignment)?.toLowerCase() === uuid.toLowerCase()
  );
}

function rejected(error: unknown): never {
  throw explainForbidden(error, 'MOVE_FORBIDDEN');
}
