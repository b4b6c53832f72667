import { EventEmitter } from 'node:events';
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import { Reflector } from '@nvidia-virtual/kubernetes/reflector';
import type { Logger } from 'pino';
import { findPod } from './pod-identity.js';

interface PodEvents {
  /** A pod came, went or became another. */
  changed: [];
}

/** The pods of this node as the API server knows them. While it is away, what it said last holds. */
export class NodePods extends EventEmitter<PodEvents> {
  readonly #node: string;
  readonly #reflector: Reflector<V1Pod, V1Pod>;
  /** By their UIDs. */
  #pods = new Map<string | undefined, V1Pod>();

  constructor(api: ApiServer, node: string, logger: Logger) {
    super();
    this.#node = node;
    this.#reflector = new Reflector<V1Pod, V1Pod>({
      ...{ api, logger, path: '/api/v1/pods', query: { fieldSelector: `spec.nodeName=${node}` } },
      read: (pod) => pod,
      reflection: {
        replace: (pods) => this.#change(() => (this.#pods = new Map(pods.map((pod) => [pod.metadata?.uid, pod])))),
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

  /** All pods were listed at least once: what is not here is nowhere. */
  get synced(): boolean {
    return this.#reflector.condition() === undefined;
  }

  /** Why what is here may be old: a sentence; undefined: it is not. */
  get trouble(): string | undefined {
    return this.#reflector.condition() ?? this.#reflector.lag();
  }

  get all(): readonly V1Pod[] {
    return [...this.#pods.values()];
  }

  /** @param uid as the kubelet has it. */
  find(uid: string): V1Pod | undefined {
    return findPod(this.all, uid, this.#node);
  }

  #change(change: () => unknown): void {
    change();
    this.emit('changed');
  }
}

/** It has run to its end: the kubelet starts none of its containers any more, and its slots are free. */
export function isOver({ status }: V1Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
