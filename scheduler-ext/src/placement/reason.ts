import { formatQuantity } from '@nvidia-virtual/kube-common/quantity';
import type { Gpu } from '../cluster/gpu.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import { type ErrorCode, type Figures, sentence } from '../errors.js';
import { coresOf, type Demand, givesCores, holdsMemory, type Need, servesCount } from './demand.js';
import { type Free, place, type Steps } from './placement.js';

/** Characters of a list of the pod in a sentence, which is sent for each of thousands of nodes. */
const MOST_LISTED = 200;

/** Why a node cannot take a pod. */
export interface Reason {
  readonly sentence: string;
  /** Whether the pod would fit without other pods, so that preemption can help. */
  readonly resolvable: boolean;
}

/**
 * Explains why a node cannot take a pod. Similar nodes get the same sentence: kube-scheduler groups
 * equal ones, and the size of a pod's event is limited.
 */
export class Reasons {
  readonly #demand: Demand;
  readonly #forbidding = new Map<string, Reason | undefined>();
  readonly #sentences = new Map<string, Reason>();

  constructor(demand: Demand) {
    this.#demand = demand;
  }

  withoutGpus(node: NodeGpus | undefined): Reason {
    return this.#reason(node?.broken ? 'NODE_INVENTORY_BROKEN' : 'NODE_WITHOUT_GPUS', {}, false);
  }

  /**
   * The reason why the pod would not fit on the empty node; undefined: it would, or no steps are
   * left to find out.
   */
  forbidding(node: NodeGpus, steps: Steps): Reason | undefined {
    // UUIDs differ between nodes, so the result cannot be cached.
    if (this.#demand.namesGpus) return this.#findForbidding(node.gpus, steps);
    const key = node.signature;
    if (this.#forbidding.has(key)) return this.#forbidding.get(key);
    const reason = this.#findForbidding(node.gpus, steps);
    if (!steps.areSpent) this.#forbidding.set(key, reason);
    return reason;
  }

  /** The reason if other pods hold the slots. */
  full(node: NodeGpus, free: Free): Reason {
    const demand = this.#demand;
    const narrow = demand.needs.findIndex(
      (need, index) => roomy(node.gpus, free, demand, index) < need.gpus,
    );
    const need = demand.needs[narrow];
    if (need === undefined) {
      const figures = {
        containers: demand.needs.length,
        free: sum(free),
        slots: sum(node.gpus.map(({ model }) => model.slots)),
      };
      return this.#reason('NODE_CONTAINERS_NOW', figures, true);
    }
    const { container } = need;
    const slots = leastTaken(node.gpus, demand, narrow);
    const gpus = need.gpus === 1 ? 'one GPU' : `each of ${need.gpus} GPUs`;
    const unknown = Math.max(...node.gpus.map((gpu) => gpu.unknown));
    const known = free.map((count, index) => count + (node.gpus[index] as Gpu).unknown);
    if (unknown > 0 && roomy(node.gpus, known, demand, narrow) >= need.gpus)
      return this.#reason('GPU_UNKNOWN_USE', { slots, gpus, container, held: unknown }, true);
    const suiting = node.gpus.map((gpu, index) =>
      demand.suits(narrow, gpu) ? Math.max(0, free[index] as number) : 0,
    );
    return this.#reason(
      'GPU_FULL',
      { slots, gpus, container, most: Math.max(...suiting), of: node.gpus[0]?.model.slots ?? 0 },
      true,
    );
  }

  #findForbidding(gpus: readonly Gpu[], steps: Steps): Reason | undefined {
    const demand = this.#demand;
    const named = gpus.filter((gpu) => demand.isNamed(gpu));
    for (const need of demand.needs) {
      const reason = this.#forbiddingFor(need, named);
      if (reason) return reason;
    }
    const empty = gpus.map(({ model }) => model.slots);
    if (place(demand, gpus, empty, 'binpack', steps) || steps.areSpent) return undefined;
    return this.#reason(
      'NODE_CONTAINERS',
      { gpus: gpus.length, containers: demand.needs.length },
      false,
    );
  }

  #forbiddingFor(need: Need, named: readonly Gpu[]): Reason | undefined {
    const { request } = this.#demand;
    const { container, slots, mode } = need;
    if (named.length === 0)
      return this.#reason('GPU_UUID', { uuids: listed(request.gpuUuids, ', ') }, false);
    const typed = named.filter(({ model }) => this.#demand.isType(model));
    if (typed.length === 0)
      return this.#reason(
        'GPU_TYPE',
        { models: namesOf(named), types: listed(request.gpuTypes, ' or ') },
        false,
      );
    const inMode = typed.filter(({ model }) => model.mode === mode);
    if (inMode.length === 0) return this.#reason('GPU_MODE', { mode, container }, false);
    const serving = inMode.filter(({ model }) => servesCount(need, model));
    if (serving.length === 0)
      return this.#reason('GPU_OVERSUBSCRIBED', { container, gpus: need.gpus }, false);
    const large = serving.filter(({ model }) => model.mostSlots >= slots);
    if (large.length === 0)
      return this.#reason('GPU_SLOTS', { most: mostSlots(serving), container, slots }, false);
    const holding = large.filter(({ model }) => holdsMemory(need, model));
    if (holding.length === 0) return this.#reason('GPU_MEMORY', memoryFigures(need, large), false);
    const giving = holding.filter(({ model }) => givesCores(need, model));
    if (giving.length === 0) return this.#reason('GPU_CORES', coresFigures(need, holding), false);
    if (giving.length < need.gpus)
      return this.#reason(
        'NODE_GPU_COUNT',
        { fitting: giving.length, container, gpus: need.gpus },
        false,
      );
    const healthy = giving.filter(({ healthy: isHealthy, drained }) => isHealthy && !drained);
    if (healthy.length >= need.gpus) return undefined;
    const figures = { unhealthy: giving.length - healthy.length, gpus: giving.length };
    const areDrained = giving.some(({ drained }) => drained);
    return this.#reason(areDrained ? 'GPU_DRAINED' : 'GPU_UNHEALTHY', figures, false);
  }

  #reason(code: ErrorCode, figures: Figures, resolvable: boolean): Reason {
    const key = code + Object.values(figures).join(' ');
    const known = this.#sentences.get(key);
    if (known) return known;
    const reason = { sentence: sentence(code, figures), resolvable };
    this.#sentences.set(key, reason);
    return reason;
  }
}

/** GPUs with room for that container alone. */
function roomy(gpus: readonly Gpu[], free: Free, demand: Demand, index: number): number {
  return gpus.filter(
    (gpu, place) =>
      (free[place] as number) >= demand.takes(index, gpu.model) && demand.suits(index, gpu),
  ).length;
}

/** The slots that the container takes of the GPU on which they are fewest. */
function leastTaken(gpus: readonly Gpu[], demand: Demand, index: number): number {
  const suiting = gpus.filter((gpu) => demand.suits(index, gpu));
  return Math.min(...suiting.map(({ model }) => demand.takes(index, model)));
}

function memoryFigures({ container, slots, memory = 0 }: Need, gpus: readonly Gpu[]): Figures {
  const largest = gpus.reduce((best, gpu) =>
    gpu.model.slotMemory > best.model.slotMemory ? gpu : best,
  ).model;
  const figures = {
    slots,
    container,
    memory: formatQuantity(memory),
    held: formatQuantity(slots * largest.slotMemory),
  };
  return { ...figures, needed: Math.ceil(memory / largest.slotMemory) };
}

function coresFigures(need: Need, gpus: readonly Gpu[]): Figures {
  const { container, slots, cores = 0, mostCores } = need;
  const given = Math.max(...gpus.map(({ model }) => coresOf(need, model)));
  const needed = Math.ceil((cores * slots) / mostCores);
  return { container, slots, cores, given, needed };
}

function listed(names: readonly string[], separator: string): string {
  const text = names.join(separator);
  return text.length > MOST_LISTED ? `${text.slice(0, MOST_LISTED)}…` : text;
}

function namesOf(gpus: readonly Gpu[]): string {
  return [...new Set(gpus.map(({ model }) => model.name))].join(' and ');
}

function mostSlots(gpus: readonly Gpu[]): number {
  return Math.max(...gpus.map(({ model }) => model.mostSlots));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + Math.max(0, number), 0);
}
