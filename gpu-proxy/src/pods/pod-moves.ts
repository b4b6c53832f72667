import type { V1Pod } from '@kubernetes/client-node';
import { type Arrival, assignmentOf, onlyGpu } from '@nvidia-virtual/kube-common/assignment';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { targetOf } from './binding.js';
import { isOver, type NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';
import { kubeletUid } from './pod-identity.js';
import { PodWishes } from './pod-wishes.js';

interface PodMovesOptions {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly events: Pick<PodEvents, 'note' | 'warn'>;
  readonly logger: Logger;
}

/** Moves the allocations of pods to the GPU that our scheduler has assigned to them since. */
export class PodMoves {
  readonly #options: PodMovesOptions;
  readonly #wishes: PodWishes<string>;

  constructor(options: PodMovesOptions) {
    this.#options = options;
    const { node, pods, logger } = options;
    this.#wishes = new PodWishes({
      ...{ node, pods, logger },
      wishes: {
        of: wishedGpu,
        carryOut: (...move) => this.#move(...move),
        refused: (allocation, pod, gpu, { message }) => {
          const { name, namespace } = pod.metadata ?? {};
          const back = assignmentOf(pod)?.former ?? allocation.specification.gpus[0];
          const sentence =
            `${message} The node tries again, and the pod holds slots of both GPUs. To stop ` +
            `that: \`kubectl gpu-usage move ${name} -n ${namespace} --gpu ${back}\`.`;
          const key = `GpuNotMoved ${allocation.id} ${gpu}`;
          options.events.warn(targetOf(pod), 'GpuNotMoved', sentence, key);
        },
      },
    });
  }

  end(): void {
    this.#wishes.end();
  }

  /** Moving pods whose programs have all left the former GPU, by the scheduler's latest wish. */
  get arrivals(): Arrival[] {
    const { pods } = this.#options;
    if (!pods.synced) return [];
    return pods.all.flatMap((pod) => {
      const { former, move = 0 } = assignmentOf(pod) ?? {};
      const uid = pod.metadata?.uid;
      if (former === undefined || uid === undefined || isOver(pod)) return [];
      return this.#hasArrived(pod) ? { pod: uid, move } : [];
    });
  }

  #hasArrived(pod: V1Pod): boolean {
    const uid = kubeletUid(pod);
    const gpu = assignedGpu(pod);
    return this.#options.node.promised
      .filter(({ owner }) => owner?.podUid === uid)
      .every(({ gpus, moving }) => gpus[0]?.toLowerCase() === gpu && moving === undefined);
  }

  async #move(allocation: Allocation, pod: V1Pod, gpu: string): Promise<boolean> {
    // The pod may have changed since, and a move by an earlier gpu-proxy ends first.
    if (assignedGpu(pod) !== gpu || allocation.specification.moving !== undefined) return false;
    const { node, events } = this.#options;
    await node.move(allocation, gpu, 'pod');
    const { owner, gpus } = allocation.specification;
    const { index } = node.gpus.find(({ uuid }) => uuid === gpus[0]) ?? {};
    const sentence = `Container ${owner?.container} is on GPU ${index} (${gpus[0]}) now.`;
    events.note(targetOf(pod), 'GpuMoved', sentence);
    return true;
  }
}

/** Undefined: it is there, and does not move. */
function wishedGpu({ specification }: Allocation, pod: V1Pod): string | undefined {
  const { gpus, moving } = specification;
  const gpu = assignedGpu(pod);
  if (gpus.length !== 1) return undefined;
  return gpus[0]?.toLowerCase() === gpu && moving === undefined ? undefined : gpu;
}

/** In lower case. Undefined: pods with several GPUs do not move. */
function assignedGpu(pod: V1Pod): string | undefined {
  const assignment = assignmentOf(pod);
  return assignment && onlyGpu(assignment)?.toLowerCase();
}
