import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { loadPodResources } from '@nvidia-virtual/kube-common/pod-resources';
import { ProxyError } from '@nvidia-virtual/service/errors';

const PATIENCE_MS = 5000;
/**
 * Milliseconds between the starts of two requests. The kubelet refuses all of its clients beyond
 * 100 requests per second, and a pod whose programs are refused can connect as often as it likes.
 */
const PAUSE_MS = 50;
/** Limit on the size of an answer. A node with a few hundred pods needs less. */
const MOST_BYTES = 16 * 1024 * 1024;

/** A container in the kubelet's list, which has no UIDs. */
export interface SlotHolder {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/**
 * Holders of each assigned slot. Two live pods can have the same slot: if the kubelet serves this
 * list while it grants a slot and a pod has just ended, it forgets that grant for a moment
 * (Kubernetes 1.36 and before; kubernetes/kubernetes#137534).
 */
export type Holders = ReadonlyMap<string, readonly SlotHolder[]>;

interface ListAnswer {
  readonly podResources: readonly {
    readonly name: string;
    readonly namespace: string;
    readonly containers: readonly {
      readonly name: string;
      readonly devices: readonly {
        readonly resourceName: string;
        readonly deviceIds: readonly string[];
      }[];
    }[];
  }[];
}

type ListCall = (
  request: unknown,
  options: { deadline: number },
  callback: (error: ServiceError | null, answer: ListAnswer) => void,
) => void;

/**
 * Client of the kubelet's pod-resources API, which lists the slots of containers. It does not list
 * init containers that run to completion, whose slots go to the next container.
 */
export class PodResources {
  readonly #socket: string;
  readonly #client: Client & { list: ListCall };
  /** The latest request. */
  #latest: Promise<unknown> = Promise.resolve();
  /** When it began, by performance.now(). */
  #start = Number.NEGATIVE_INFINITY;
  /** The request that calls wait for, until it begins. */
  #next: Promise<Holders> | undefined;

  constructor(kubeletRoot: string) {
    this.#socket = path.join(kubeletRoot, 'pod-resources', 'kubelet.sock');
    const Service = loadPodResources();
    this.#client = new Service(`unix:${this.#socket}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': MOST_BYTES,
      'grpc.max_reconnect_backoff_ms': 1000,
    }) as unknown as Client & { list: ListCall };
  }

  /**
   * The holders at a time after the call. Calls that wait share a request.
   * @throws ProxyError POD_RESOURCES_AWAY
   */
  holders(): Promise<Holders> {
    this.#next ??= this.#listSoon();
    return this.#next;
  }

  async #listSoon(): Promise<Holders> {
    await this.#latest.catch(() => undefined);
    await sleep(Math.max(0, this.#start + PAUSE_MS - performance.now()), undefined, { ref: false });
    this.#start = performance.now();
    this.#next = undefined;
    const list = this.#list();
    this.#latest = list;
    return list;
  }

  #list(): Promise<Holders> {
    return new Promise((resolve, reject) =>
      this.#client.list({}, { deadline: Date.now() + PATIENCE_MS }, (error, answer) => {
        if (error)
          reject(
            new ProxyError('POD_RESOURCES_AWAY', { socket: this.#socket, reason: error.details }),
          );
        else resolve(holdersIn(answer));
      }),
    );
  }

  close(): void {
    this.#client.close();
  }
}

function holdersIn({ podResources }: ListAnswer): Holders {
  const holders = new Map<string, SlotHolder[]>();
  for (const { namespace, name, containers } of podResources)
    for (const { name: container, devices } of containers)
      for (const { resourceName, deviceIds } of devices)
        if (resourceName === RESOURCE)
          for (const slot of deviceIds)
            holders.set(slot, [...(holders.get(slot) ?? []), { namespace, pod: name, container }]);
  return holders;
}

export function isHolder(
  { namespace, pod }: SlotHolder,
  other: { readonly namespace: string; readonly pod: string },
): boolean {
  return namespace === other.namespace && pod === other.pod;
}

/** The containers that hold at least one of these slots. */
export function holdersOf(slots: readonly string[], holders: Holders): readonly SlotHolder[] {
  return slots.flatMap((slot) => holders.get(slot) ?? []);
}
