import type { NodeGpuUsage, PodGpuUsage } from '../resources.js';
import { Collection } from './collection.js';
import type { Figures } from './figures.js';
import { readGpuRequest } from './gpu-request.js';
import type { Mirror } from './mirror.js';
import { type GpuNode, nodeUsage } from './node-usage.js';
import { podUsage } from './pod-usage.js';
import type { GpuPod } from './pods.js';
import { SlotMap } from './slots.js';

interface BoardOptions {
  readonly pods: Mirror<GpuPod>;
  readonly nodes: Mirror<GpuNode>;
  readonly figures: Figures;
  /** Milliseconds between two reads of the ledger while clients are active, or a read failed. */
  readonly interval: number;
  /** Interval without active clients. It keeps figures recent for the next request. */
  readonly restingInterval: number;
}

/** Milliseconds for which a client counts as active after a request. */
const ACTIVE_PERIOD = 60_000;
/** Message of each object. It contains no age: every object would change with each read. */
const AWAY =
  'The ledger of nvidia-virtual (Redis) cannot be read. See the log of nvidia-virtual-usage-api.';
/** Milliseconds to debounce changes of pods and nodes. */
const DEBOUNCE = 100;
/**
 * The pause between two compositions is at least this many times the duration of the last one,
 * which can exceed 100 ms in a large cluster.
 */
const PAUSE_FACTOR = 4;

/** Composes the usage objects from pods, nodes and the ledger. */
export class Board {
  readonly pods = new Collection<PodGpuUsage>();
  readonly nodes = new Collection<NodeGpuUsage>();
  readonly #options: BoardOptions;
  readonly #changed = () => this.#scheduleCompose();
  #timer: NodeJS.Timeout | undefined;
  #debounce: NodeJS.Timeout | undefined;
  #activeUntil = 0;
  /** Duration of the last composition in milliseconds. */
  #composeTime = 0;
  #cycling: Promise<void> | undefined;
  #closed = false;

  constructor(options: BoardOptions) {
    this.#options = options;
    options.pods.on('changed', this.#changed);
    options.nodes.on('changed', this.#changed);
    void this.#cycle();
  }

  /** Whether pods and nodes were read, and a read of the ledger was tried. */
  get ready(): boolean {
    const { pods, nodes, figures } = this.#options;
    return pods.synced && nodes.synced && figures.readAt > 0;
  }

  /** Warning for every reader, if the ledger cannot be read. */
  get warning(): string | undefined {
    if (!this.#options.figures.trouble) return undefined;
    const newest = Math.max(0, ...[...this.#options.figures.nodes.values()].map(({ at }) => at));
    const age = Math.round((Date.now() - newest) / 1000);
    const figures = newest === 0 ? 'there are no usage figures' : `usage figures are ${age} s old`;
    return (
      `The ledger of nvidia-virtual (Redis) cannot be read: ${figures}. ` +
      'See the log of nvidia-virtual-usage-api.'
    );
  }

  /** Call before each read: updates the figures and keeps them up to date for a while. */
  async refresh(): Promise<void> {
    this.#activeUntil = Date.now() + ACTIVE_PERIOD;
    const { figures, interval } = this.#options;
    if (Date.now() - figures.readAt < interval) return;
    const cycle = this.#cycle();
    // Do not wait for an unreachable Redis: answer with the last figures and a warning.
    if (!figures.trouble) await cycle;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#debounce);
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
    const active = watched || Date.now() < this.#activeUntil;
    // After a failure, requests do not wait for a read: the next one must see that Redis is back.
    const soon = active || this.#options.figures.trouble !== undefined;
    const pause = soon ? this.#options.interval : this.#options.restingInterval;
    this.#timer = setTimeout(
      () => void this.#cycle(),
      Math.max(pause, this.#composeTime * PAUSE_FACTOR),
    );
  }

  #scheduleCompose(): void {
    this.#debounce ??= setTimeout(
      () => {
        this.#debounce = undefined;
        this.#compose();
      },
      Math.max(DEBOUNCE, this.#composeTime * PAUSE_FACTOR),
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
        gpuRequest: readGpuRequest(pod),
        trouble,
      };
      if (node !== undefined) mapOf(slots, node).add(pod, context.gpuRequest, context.figures);
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
    this.#composeTime = performance.now() - begin;
  }
}

function mapOf(slots: Map<string, SlotMap>, node: string): SlotMap {
  const found = slots.get(node) ?? new SlotMap();
  slots.set(node, found);
  return found;
}
