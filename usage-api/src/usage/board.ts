import type { NodeGpuUsage, PodGpuUsage } from '../resources.js';
import { readAsked } from './asked.js';
import { Collection } from './collection.js';
import type { Figures } from './figures.js';
import type { Mirror } from './mirror.js';
import { type GpuNode, nodeUsage } from './node-usage.js';
import { podUsage } from './pod-usage.js';
import type { GpuPod } from './pods.js';
import { SlotMap } from './slots.js';

export interface BoardOptions {
  readonly pods: Mirror<GpuPod>;
  readonly nodes: Mirror<GpuNode>;
  readonly figures: Figures;
  /** Milliseconds between two readings of the ledger while somebody is interested. */
  readonly interval: number;
  /** The same while nobody is, so that the first who asks is told what was used lately. */
  readonly restingInterval: number;
}

/** How long somebody who asked stays interested. */
const INTEREST = 60_000;
/**
 * What an object says for itself; it has no age in it, else every object would be new each time.
 */
const AWAY =
  'The ledger of nvidia-virtual (Redis) cannot be read. The log of nvidia-virtual-usage-api says why.';
/** Many pods may change at once: they are looked at together. */
const TOGETHER = 100;
/**
 * Of a large cluster all is put together in a tenth of a second or more: between two times there
 * are pauses so many times as long.
 */
const REST = 4;

/** Puts together what pods, nodes and ledger say. */
export class Board {
  readonly pods = new Collection<PodGpuUsage>();
  readonly nodes = new Collection<NodeGpuUsage>();
  readonly #options: BoardOptions;
  readonly #changed = () => this.#soon();
  #timer: NodeJS.Timeout | undefined;
  #together: NodeJS.Timeout | undefined;
  #interestedUntil = 0;
  /** Milliseconds that putting all together took the last time. */
  #effort = 0;
  #cycling: Promise<void> | undefined;
  #closed = false;

  constructor(options: BoardOptions) {
    this.#options = options;
    options.pods.on('changed', this.#changed);
    options.nodes.on('changed', this.#changed);
    void this.#cycle();
  }

  /** True once pods and nodes were read, and the ledger was asked. */
  get ready(): boolean {
    const { pods, nodes, figures } = this.#options;
    return pods.synced && nodes.synced && figures.readAt > 0;
  }

  /** Says what everybody who reads should know; undefined: nothing. */
  get warning(): string | undefined {
    if (!this.#options.figures.trouble) return undefined;
    const newest = Math.max(0, ...[...this.#options.figures.nodes.values()].map(({ at }) => at));
    const age = Math.round((Date.now() - newest) / 1000);
    const figures =
      newest === 0
        ? 'there are no figures of what is used'
        : `the figures of what is used are ${age} s old`;
    return `The ledger of nvidia-virtual (Redis) cannot be read, so ${figures}. The log of nvidia-virtual-usage-api says why.`;
  }

  /** Somebody reads now: the figures are made fresh, and kept so for a while. */
  async refresh(): Promise<void> {
    this.#interestedUntil = Date.now() + INTEREST;
    const { figures, interval } = this.#options;
    if (Date.now() - figures.readAt < interval) return;
    const cycle = this.#cycle();
    // Nobody waits for a Redis that does not answer: what is known is told, with a warning.
    if (!figures.trouble) await cycle;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#together);
    this.#options.pods.off('changed', this.#changed);
    this.#options.nodes.off('changed', this.#changed);
  }

  #cycle(): Promise<void> {
    this.#cycling ??= this.#read().finally(() => {
      this.#cycling = undefined;
    });
    return this.#cycling;
  }

  async #read(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#options.figures.read();
    if (this.#closed) return;
    this.#compose();
    const watched = this.pods.listenerCount('changes') + this.nodes.listenerCount('changes') > 0;
    const interested = watched || Date.now() < this.#interestedUntil;
    const pause = interested ? this.#options.interval : this.#options.restingInterval;
    this.#timer = setTimeout(() => void this.#cycle(), Math.max(pause, this.#effort * REST));
  }

  #soon(): void {
    this.#together ??= setTimeout(
      () => {
        this.#together = undefined;
        this.#compose();
      },
      Math.max(TOGETHER, this.#effort * REST),
    );
  }

  #compose(): void {
    const { pods, nodes, figures } = this.#options;
    if (!pods.synced || !nodes.synced) return;
    const begin = performance.now();
    const trouble = figures.trouble ? AWAY : undefined;
    const slots = new Map<string, SlotMap>();
    const usages = [...pods.items.values()].map((pod) => {
      const node = pod.spec?.nodeName;
      const context = {
        figures: figures.nodes.get(node ?? ''),
        inventory: nodes.items.get(node ?? '')?.inventory,
        asked: readAsked(pod),
        trouble,
      };
      if (node !== undefined) mapOf(slots, node).add(pod, context.asked, context.figures);
      return podUsage(pod, context);
    });
    this.pods.replace(usages);
    this.nodes.replace(
      [...nodes.items.values()].map((node) =>
        nodeUsage(node, {
          figures: figures.nodes.get(node.name),
          slots: mapOf(slots, node.name),
          trouble,
        }),
      ),
    );
    this.#effort = performance.now() - begin;
  }
}

function mapOf(slots: Map<string, SlotMap>, node: string): SlotMap {
  const found = slots.get(node) ?? new SlotMap();
  slots.set(node, found);
  return found;
}
