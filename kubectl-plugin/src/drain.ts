import { setTimeout as sleep } from 'node:timers/promises';
import { drainedGpus } from '@nvidia-virtual/kube-common/drained';
import { DRAINED_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { ContainerUsage, PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { explainForbidden, KubectlError, PluginError } from './errors.js';
import type { Kubectl } from './kubectl.js';
import { findGpu } from './node-gpu.js';
import { PodObject } from './pod-object.js';
import type { UsageClient } from './usage-client.js';

interface DrainOptions {
  readonly kubectl: Kubectl;
  readonly client: Pick<UsageClient, 'pods' | 'node'>;
  readonly node: string;
  /** Index or UUID. */
  readonly gpu: string;
  /** Time for the pods to leave, in milliseconds. 0: they are not waited for. */
  readonly timeoutMs: number;
  readonly pauseMs?: number;
  readonly settleMs?: number;
}

/** The fields of a Node that are read. */
interface NodeObject {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

const PAUSE_MS = 1000;
/**
 * Milliseconds after which no binding to the GPU is in progress (the scheduler gives one up after
 * 4 s), and the usage API shows it.
 */
const SETTLE_MS = 6000;
const MOST_ATTEMPTS = 5;

/** Lets the pods of a GPU move to others of its node, and keeps new ones away, or allows both. */
export class Drain {
  readonly #options: DrainOptions;

  constructor(options: DrainOptions) {
    this.#options = options;
  }

  /**
   * @param say receives a line for each pod
   * @returns a sentence. @throws PluginError DRAIN_INCOMPLETE and others, KubectlError
   */
  async drain(say: (line: string) => void): Promise<string> {
    const { client, node, gpu, timeoutMs } = this.#options;
    const uuid = await findGpu(client, node, gpu);
    // Pods can move before #wait() looks.
    const before = timeoutMs === 0 ? [] : (await this.#pods()).filter((pod) => isOn(pod, uuid));
    await this.#change((drained) => drained.add(uuid.toLowerCase()));
    const undone = `until \`kubectl gpu-usage undrain ${node} --gpu ${gpu}\``;
    if (timeoutMs === 0) return `GPU ${gpu} of node ${node} is drained: it gets no pods ${undone}.`;
    const { seen, left, staying } = await this.#wait(uuid, before);
    for (const pod of seen)
      say(staying.has(pod.podUid) ? await this.#whyStays(pod) : whereIs(pod, left));
    const stay = staying.size;
    if (stay > 0) throw new PluginError('DRAIN_INCOMPLETE', { node, gpu, stay });
    return `GPU ${gpu} of node ${node} is drained: it has no pods, and gets none ${undone}.`;
  }

  /** @returns a sentence. @throws PluginError, KubectlError */
  async undrain(): Promise<string> {
    const { client, node, gpu } = this.#options;
    const uuid = await findGpu(client, node, gpu);
    await this.#change((drained) => drained.delete(uuid.toLowerCase()));
    return `GPU ${gpu} of node ${node} gets pods again.`;
  }

  /**
   * Waits until no pod holds slots of the GPU. A pod whose binding was in progress may come late.
   * @param before pods that were on it before it was marked
   * @returns all pods that were on it; those of the node at the end, by UID; UIDs of those that
   * are still on it, or whose node no longer reports them
   */
  async #wait(
    uuid: string,
    before: readonly PodGpuUsage[],
  ): Promise<{
    readonly seen: Iterable<PodGpuUsage>;
    readonly left: ReadonlyMap<string, PodGpuUsage>;
    readonly staying: ReadonlySet<string>;
  }> {
    const { timeoutMs, pauseMs = PAUSE_MS, settleMs = SETTLE_MS } = this.#options;
    const begin = performance.now();
    const seen = new Map(before.map((pod) => [pod.podUid, pod]));
    for (;;) {
      const left = new Map((await this.#pods()).map((pod) => [pod.podUid, pod]));
      const staying = new Set<string>();
      for (const pod of left.values()) {
        const isSilent = seen.has(pod.podUid) && gpusOf(pod).length === 0;
        if (!isOn(pod, uuid) && !isSilent) continue;
        seen.set(pod.podUid, pod);
        staying.add(pod.podUid);
      }
      const passed = performance.now() - begin;
      if ((staying.size === 0 && passed >= settleMs) || passed + pauseMs > timeoutMs)
        return { seen: seen.values(), left, staying };
      await sleep(pauseMs);
    }
  }

  async #whyStays({ podUid, metadata: { namespace = '', name } }: PodGpuUsage): Promise<string> {
    const { kubectl } = this.#options;
    const object = new PodObject({ kubectl, namespace, name });
    const reason = await object.latestEvent(podUid, 'GpuNotMoved');
    return `${namespace}/${name} stays: ${reason ?? 'it has not moved in time.'}`;
  }

  async #pods(): Promise<readonly PodGpuUsage[]> {
    const { client, node } = this.#options;
    return (await client.pods({ fields: `node=${node}` })).items;
  }

  /** Writes with the node's resourceVersion, so that no change of another user is lost. */
  async #change(change: (drained: Set<string>) => unknown): Promise<void> {
    const { kubectl, node } = this.#options;
    const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
    for (let attempt = 1; ; attempt++) {
      try {
        const { metadata } = JSON.parse(await kubectl.get(path)) as NodeObject;
        const drained = drainedGpus(metadata.annotations?.[DRAINED_ANNOTATION]);
        change(drained);
        const value = drained.size > 0 ? [...drained].join(',') : null;
        const annotations = { [DRAINED_ANNOTATION]: value };
        const { resourceVersion } = metadata;
        const patch = { metadata: { resourceVersion, annotations } };
        return await kubectl.patchNode(node, patch);
      } catch (error) {
        const isConflict = error instanceof KubectlError && error.reason === 'Conflict';
        if (!isConflict || attempt === MOST_ATTEMPTS)
          throw explainForbidden(error, 'DRAIN_FORBIDDEN');
      }
    }
  }
}

function whereIs(
  { podUid, metadata: { namespace, name } }: PodGpuUsage,
  left: ReadonlyMap<string, PodGpuUsage>,
): string {
  const now = left.get(podUid);
  if (now === undefined) return `${namespace}/${name} has ended.`;
  const [gpu] = gpusOf(now);
  return `${namespace}/${name} is on GPU ${gpu?.index ?? gpu?.uuid} now.`;
}

function gpusOf({ containers }: PodGpuUsage): ContainerUsage['gpus'] {
  return containers.flatMap(({ gpus }) => gpus);
}

function isOn({ containers }: PodGpuUsage, uuid: string): boolean {
  return containers.some(
    ({ gpus, reserved }) => gpus.some((gpu) => gpu.uuid === uuid) || reserved?.includes(uuid),
  );
}
