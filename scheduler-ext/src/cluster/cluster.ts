import type { Holding } from '@nvidia-virtual/kube-common/holding';
import { NodeGpus } from './node-gpus.js';
import type { PodRecord } from './pod.js';

/** Slots reserved by a binding that the watch of pods does not show yet. */
interface Reservation {
  readonly node: string;
  /** Time of the successful binding, by performance.now(); undefined while it is in progress. */
  readonly bound: number | undefined;
}

/** Slots of a second GPU, to which a bound pod is about to move. */
interface Second {
  readonly holding: Holding;
  /** resourceVersion of the pod at the reservation. A later one shows the pod's new assignment. */
  readonly version: string;
}

/** Slots that a preemptor gets when its victims are gone. */
interface Promised {
  readonly holdings: ReadonlyMap<string, Holding>;
  /** The node chosen by the extender; undefined: kube-scheduler nominates one. */
  readonly chosen: string | undefined;
}

/** @param claimEnded whether the slots were only claimed */
type Gained = (node: NodeGpus, claimEnded: boolean) => void;

/**
 * The slots in use on each node: a cache of nodes and pods, plus reservations. All methods are
 * synchronous, so a lookup followed by a reservation is atomic.
 */
export class Cluster {
  readonly #nodes = new Map<string, NodeGpus>();
  readonly #pods = new Map<string, PodRecord>();
  readonly #reservations = new Map<string, Reservation>();
  readonly #seconds = new Map<string, Second>();
  readonly #promises = new Map<string, Promised>();
  /** Nodes of claims: members of groups that were filtered and are not bound yet. */
  readonly #claims = new Map<string, string>();
  readonly #gained: Gained;

  /** @param gained called with each node that may have more free slots than before */
  constructor(gained: Gained = () => {}) {
    this.#gained = gained;
  }

  get counts(): { readonly nodes: number; readonly pods: number; readonly reservations: number } {
    return {
      nodes: this.#nodes.size,
      pods: this.#pods.size,
      reservations: this.#reservations.size,
    };
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

  pods(): IterableIterator<PodRecord> {
    return this.#pods.values();
  }

  /** @param drained the annotation of its drained GPUs */
  putNode(name: string, inventory: string | undefined, drained?: string): void {
    const node = this.#made(name);
    if (node.setInventory(inventory, drained)) this.#gained(node, false);
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

  /** Replaces all pods by the list at time `since`, by performance.now(). */
  replacePods(pods: readonly PodRecord[], since: number): void {
    const present = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#pods.keys()) if (!present.has(uid)) this.removePod(uid);
    for (const [uid, { bound }] of this.#reservations) {
      if (!present.has(uid) && bound !== undefined && bound < since) this.release(uid);
    }
    for (const pod of pods) this.putPod(pod);
  }

  replaceNodes(
    nodes: readonly {
      readonly name: string;
      readonly inventory: string | undefined;
      readonly drained?: string | undefined;
    }[],
  ): void {
    const present = new Set(nodes.map(({ name }) => name));
    for (const name of this.#nodes.keys()) if (!present.has(name)) this.removeNode(name);
    for (const { name, inventory, drained } of nodes) this.putNode(name, inventory, drained);
  }

  isReserved(uid: string): boolean {
    return this.#reservations.has(uid);
  }

  /**
   * Slots that count as used until the pod is bound or removed, or the claim ends. No-op for a pod
   * that is reserved or bound: the end of the claim would free its slots.
   */
  claim(pod: PodRecord, node: string, holding: Holding): void {
    const { uid, priority, demand } = pod;
    this.unclaim(uid);
    if (this.isReserved(uid) || this.#pods.get(uid)?.node !== undefined) return;
    this.#claims.set(uid, node);
    this.#made(node).hold({ uid, priority, holding, demand });
  }

  /** Ends the claim of a pod, if it has one. */
  unclaim(uid: string): void {
    const name = this.#claims.get(uid);
    this.#claims.delete(uid);
    if (name !== undefined) this.#leave(uid, name, true);
  }

  /** Ends a claim of the pod, too. */
  reserve(pod: PodRecord, node: string, holding: Holding): void {
    this.unclaim(pod.uid);
    this.#reservations.set(pod.uid, { node, bound: undefined });
    this.#made(node).hold({ uid: pod.uid, priority: pod.priority, holding, demand: pod.demand });
  }

  /** Marks a binding as successful. The reservation ends when the watch shows the pod. */
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
   * Reserves slots of a second GPU for a bound pod, until the watch shows another version of the
   * pod, or until letGo().
   */
  holdAlso(pod: PodRecord, holding: Holding): void {
    this.#seconds.set(pod.uid, { holding, version: pod.version });
    if (pod.node !== undefined) this.#hold(pod, this.#made(pod.node));
  }

  holdsAlso(uid: string): boolean {
    return this.#seconds.has(uid);
  }

  /** Frees the second GPU of a pod whose assignment does not name it. */
  letGo(uid: string): void {
    const pod = this.#pods.get(uid);
    if (!this.#seconds.delete(uid) || pod?.node === undefined || pod.ended) return;
    this.#hold(pod, this.#made(pod.node));
  }

  /**
   * Promises slots to a preemptor, on the chosen node or on the one that kube-scheduler nominates
   * later. No-op for a pod that is deleted or bound: no event would end the promise.
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
      if (name === place)
        node?.promise({ uid: pod.uid, priority: pod.priority, holding, demand: pod.demand });
      else node?.unpromise(pod.uid);
    }
  }

  /** Cancels the promise of a pod. */
  unpromise(uid: string): void {
    for (const name of this.#promises.get(uid)?.holdings.keys() ?? []) {
      const node = this.#nodes.get(name);
      if (node?.unpromise(uid)) this.#gained(node, false);
    }
    this.#promises.delete(uid);
  }

  #settle(pod: PodRecord, node: string): void {
    const reservation = this.#reservations.get(pod.uid);
    this.#reservations.delete(pod.uid);
    this.unclaim(pod.uid);
    if (reservation && reservation.node !== node) this.#leave(pod.uid, reservation.node);
    this.unpromise(pod.uid);
    this.#hold(pod, this.#made(node));
  }

  #hold(pod: PodRecord, node: NodeGpus): void {
    const second = this.#seconds.get(pod.uid);
    const isHeld = second?.version === pod.version;
    if (!isHeld) this.#seconds.delete(pod.uid);
    const holding = isHeld ? new Map([...(pod.holding ?? []), ...second.holding]) : pod.holding;
    const former = node.holders.get(pod.uid)?.holding;
    node.hold({ ...pod, holding });
    // It holds slots of one GPU again: it has moved, or stays.
    if (former && holding && holding.size < former.size) this.#gained(node, false);
  }

  #free(uid: string, node: string | undefined): void {
    const reservation = this.#reservations.get(uid);
    this.#reservations.delete(uid);
    this.#seconds.delete(uid);
    this.unclaim(uid);
    this.unpromise(uid);
    for (const name of new Set([node, reservation?.node]))
      if (name !== undefined) this.#leave(uid, name);
  }

  #leave(uid: string, name: string, claimEnded = false): void {
    const node = this.#nodes.get(name);
    node?.release(uid);
    if (node) this.#gained(node, claimEnded);
    this.#forget(node);
  }

  #forget(node: NodeGpus | undefined): void {
    if (node?.idle) this.#nodes.delete(node.name);
  }

  #made(name: string): NodeGpus {
    const known = this.#nodes.get(name);
    if (known) return known;
    const node = new NodeGpus(name);
    this.#nodes.set(name, node);
    return node;
  }
}
