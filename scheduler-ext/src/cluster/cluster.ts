import type { Holding } from '@nvidia-virtual/kubernetes/holding';
import { NodeGpus, NodeStates } from './node-gpus.js';
import { NodeTable } from './node-table.js';
import type { PodRecord } from './pod.js';

/** Slots that were promised by a binding which the pods do not show yet. */
interface Reservation {
  readonly node: string;
  /** When its binding ended well, by performance.now(); undefined while it is under way. */
  readonly bound: number | undefined;
}

/** What a pod gets on which node when others are gone. */
interface Promised {
  readonly holdings: ReadonlyMap<string, Holding>;
  /** Where it holds although kube-scheduler did not choose. */
  readonly chosen: string | undefined;
}

/**
 * Who holds what on which node: what the nodes and pods say, and what was reserved since. Nothing here waits, so whatever is looked up and
 * then reserved in one go is nobody else's.
 */
export class Cluster {
  readonly #nodes = new Map<string, NodeGpus>();
  readonly #states = new NodeStates();
  /** The same by the bytes of their names. */
  readonly table = new NodeTable(() => this.#nodes.values(), this.#states);
  readonly #indices = new Indices();
  readonly #pods = new Map<string, PodRecord>();
  readonly #reservations = new Map<string, Reservation>();
  readonly #promises = new Map<string, Promised>();
  readonly #gained: (node: NodeGpus) => void;

  /** @param gained hears of each node on which there may be more room than before */
  constructor(gained: (node: NodeGpus) => void = () => {}) {
    this.#gained = gained;
  }

  get counts(): { readonly nodes: number; readonly pods: number; readonly reservations: number } {
    return { nodes: this.#nodes.size, pods: this.#pods.size, reservations: this.#reservations.size };
  }

  nodes(): IterableIterator<NodeGpus> {
    return this.#nodes.values();
  }

  node(name: string): NodeGpus | undefined {
    return this.#nodes.get(name);
  }

  pod(uid: string): PodRecord | undefined {
    return this.#pods.get(uid);
  }

  putNode(name: string, inventory: string | undefined): void {
    const node = this.#made(name);
    if (node.setInventory(inventory)) this.#gained(node);
  }

  removeNode(name: string): void {
    const node = this.#nodes.get(name);
    node?.setInventory(undefined);
    this.#forget(node);
  }

  putPod(pod: PodRecord): void {
    this.#pods.set(pod.uid, pod);
    if (pod.ended) this.#free(pod.uid, pod.node);
    else if (pod.node !== undefined) this.#settle(pod, pod.node);
    else this.#keepPromise(pod);
  }

  removePod(uid: string): void {
    const pod = this.#pods.get(uid);
    this.#pods.delete(uid);
    this.#free(uid, pod?.node);
  }

  /** All pods that there were at `since`, by performance.now(). */
  replacePods(pods: readonly PodRecord[], since: number): void {
    const present = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#pods.keys()) if (!present.has(uid)) this.removePod(uid);
    for (const [uid, { bound }] of this.#reservations) {
      if (!present.has(uid) && bound !== undefined && bound < since) this.release(uid);
    }
    for (const pod of pods) this.putPod(pod);
  }

  replaceNodes(nodes: readonly { readonly name: string; readonly inventory: string | undefined }[]): void {
    const present = new Set(nodes.map(({ name }) => name));
    for (const name of this.#nodes.keys()) if (!present.has(name)) this.removeNode(name);
    for (const { name, inventory } of nodes) this.putNode(name, inventory);
  }

  isReserved(uid: string): boolean {
    return this.#reservations.has(uid);
  }

  reserve(pod: PodRecord, node: string, holding: Holding): void {
    this.#reservations.set(pod.uid, { node, bound: undefined });
    this.#made(node).hold({ uid: pod.uid, priority: pod.priority, holding, demand: pod.demand });
  }

  /** The binding ended well: from now on the pod's own word counts, once it is heard. */
  confirm(uid: string): void {
    const reservation = this.#reservations.get(uid);
    if (reservation) this.#reservations.set(uid, { ...reservation, bound: performance.now() });
  }

  release(uid: string): void {
    const reservation = this.#reservations.get(uid);
    this.#reservations.delete(uid);
    if (reservation && this.#pods.get(uid)?.node === undefined) this.#leave(uid, reservation.node);
  }

  /**
   * Others are to go so that this pod gets that; it holds on the node that is chosen here, or that kube-scheduler chooses then. A pod that is
   * gone or bound by now gets nothing: no word of it would end the promise.
   */
  promise(pod: PodRecord, holdings: ReadonlyMap<string, Holding>, chosen?: string): void {
    this.unpromise(pod.uid);
    const known = this.#pods.get(pod.uid);
    if (known === undefined || known.ended || known.node !== undefined) return;
    this.#promises.set(pod.uid, { holdings, chosen });
    this.#keepPromise(pod);
  }

  #keepPromise(pod: PodRecord): void {
    const { holdings, chosen } = this.#promises.get(pod.uid) ?? {};
    const place = pod.nominated ?? chosen;
    for (const [name, holding] of holdings ?? []) {
      const node = this.#nodes.get(name);
      if (name === place) node?.promise({ uid: pod.uid, priority: pod.priority, holding, demand: pod.demand });
      else node?.unpromise(pod.uid);
    }
  }

  /** Who was to go stays after all. */
  unpromise(uid: string): void {
    for (const name of this.#promises.get(uid)?.holdings.keys() ?? []) {
      const node = this.#nodes.get(name);
      if (node?.unpromise(uid)) this.#gained(node);
    }
    this.#promises.delete(uid);
  }

  #settle(pod: PodRecord, node: string): void {
    const reservation = this.#reservations.get(pod.uid);
    this.#reservations.delete(pod.uid);
    if (reservation && reservation.node !== node) this.#leave(pod.uid, reservation.node);
    this.unpromise(pod.uid);
    this.#made(node).hold(pod);
  }

  #free(uid: string, node: string | undefined): void {
    const reservation = this.#reservations.get(uid);
    this.#reservations.delete(uid);
    this.unpromise(uid);
    for (const name of new Set([node, reservation?.node])) if (name !== undefined) this.#leave(uid, name);
  }

  #leave(uid: string, name: string): void {
    const node = this.#nodes.get(name);
    node?.release(uid);
    if (node) this.#gained(node);
    this.#forget(node);
  }

  #forget(node: NodeGpus | undefined): void {
    if (!node?.idle || !this.#nodes.delete(node.name)) return;
    node.leave();
    this.#indices.giveBack(node.index);
    this.table.changed();
  }

  #made(name: string): NodeGpus {
    const known = this.#nodes.get(name);
    if (known) return known;
    const node = new NodeGpus(name, this.#indices.take(), this.#states);
    this.#nodes.set(name, node);
    this.table.changed();
    return node;
  }
}

/** Whole numbers from 0, none of them twice at a time. */
class Indices {
  readonly #free: number[] = [];
  #next = 0;

  take(): number {
    return this.#free.pop() ?? this.#next++;
  }

  giveBack(index: number): void {
    this.#free.push(index);
  }
}
