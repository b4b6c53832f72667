import { EventEmitter } from 'node:events';
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { Reflector } from '@nvidia-virtual/kube-common/reflector';
import type { Logger } from 'pino';
import { keepPod } from './kept-pod.js';
import { findPod } from './pod-identity.js';

interface PodEvents {
  /** A pod was added, changed or removed. */
  changed: [];
}

/**
 * A cache of the pods of this node. While the API server is unavailable, the last known state.
 */
export class NodePods extends EventEmitter<PodEvents> {
  readonly #node: string;
  readonly #reflector: Reflector<V1Pod, V1Pod>;
  /** By UID. */
  #pods = new Map<string | undefined, V1Pod>();

  constructor(api: ApiServer, node: string, logger: Logger) {
    super();
    this.#node = node;
    this.#reflector = new Reflector<V1Pod, V1Pod>({
      ...{ api, logger, path: '/api/v1/pods', query: { fieldSelector: `spec.nodeName=${node}` } },
      read: keepPod,
      reflection: {
        replace: (pods) =>
          this.#change(() => (this.#pods = new Map(pods.map((pod) => [pod.metadata?.uid, pod])))),
        put: (pod) => this.#change(() => this.#pods.set(pod.metadata?.uid, pod)),
        remove: ({ metadata }) => this.#change(() => this.#pods.delete(metadata?.uid)),
      },
    });
    this.setMaxListeners(0);
  }

  start(): void {
    void this.#reflector.run();
  }

  stop(): void {
    this.#reflector.stop();
  }

  /** True after the first complete list: a pod that is missing here does not exist. */
  get synced(): boolean {
    return this.#reflector.condition() === undefined;
  }

  /** The reason why the cache may be stale, as a sentence; undefined: it is current. */
  get trouble(): string | undefined {
    return this.#reflector.condition() ?? this.#reflector.lag();
  }

  get all(): readonly V1Pod[] {
    return [...this.#pods.values()];
  }

  /** @param uid the kubelet's UID of the pod */
  find(uid: string): V1Pod | undefined {
    return findPod(this.all, uid, this.#node);
  }

  #change(change: () => unknown): void {
    change();
    this.emit('changed');
  }
}

/**
 * Whether the pod has terminated: the kubelet starts none of its containers again, and its slots
 * are free.
 */
export function isOver({ status }: V1Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
