import { GpuChoice } from '@nvidia-virtual/kube-common/gpu-choice';
import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import {
  type ContainerRequest,
  type PodRequest,
  peak,
} from '@nvidia-virtual/kube-common/pod-request';
import type { SharingMode } from '@nvidia-virtual/ledger';
import type { Gpu } from '../cluster/gpu.js';
import type { Model } from '../cluster/model.js';

/** The need of one container: `slots` on each of `gpus` different GPUs. */
export interface Need {
  readonly container: string;
  readonly init: boolean;
  readonly slots: number;
  readonly gpus: number;
  readonly memory: number | undefined;
  /** Percent of the time of each GPU. Undefined: the part of its slots suffices. */
  readonly cores: number | undefined;
  /** Percent of a GPU's time that its slots allow it to take on any GPU. */
  readonly mostCores: number;
  readonly mode: SharingMode;
}

/** The slots of a container on one GPU. Pieces of the same container need different GPUs. */
interface Piece {
  /** Index of the need. */
  readonly index: number;
  readonly slots: number;
}

/** The demand of a pod, with a cache of suitable models. */
export class Demand {
  /** In the order in which the containers start. */
  readonly needs: readonly Need[];
  /** Pieces of the containers that keep running, largest first. */
  readonly pieces: readonly Piece[];
  /** Lower bound of the slots that these containers hold in sum. */
  readonly lastingSlots: number;
  /** Upper bound of the slots that the pod can hold of any GPU at a time without an assignment. */
  readonly most: number;
  /** Number of init containers. */
  readonly inits: number;
  readonly #choice: GpuChoice;
  /** Results of takes() for an empty GPU, by need and model. */
  readonly #takes: (number | undefined)[][];
  /** Results of isNamed(). */
  readonly #named = new WeakMap<Gpu, boolean>();

  /**
   * @param slotCores percent of a GPU's time that a container may ask for with one slot. Undefined:
   * a container gets at most the part that its slots are of the GPU.
   */
  constructor(
    readonly request: PodRequest,
    slotCores?: number,
  ) {
    this.needs = request.containers.map((container) => needOf(container, slotCores));
    this.pieces = this.needs
      .flatMap(({ init, gpus, slots }, index) =>
        init ? [] : Array.from({ length: gpus }, () => ({ index, slots })),
      )
      .sort((a, b) => b.slots - a.slots || a.index - b.index);
    this.lastingSlots = this.pieces.reduce((sum, { slots }) => sum + slots, 0);
    this.most = peak(this.needs);
    this.inits = this.needs.filter(({ init }) => init).length;
    this.#choice = new GpuChoice(request);
    this.#takes = this.needs.map(() => []);
  }

  /** Whether the empty GPU could serve the container. */
  suits(index: number, gpu: Gpu): boolean {
    return this.isOpen(gpu) && this.suitsModel(index, gpu.model);
  }

  /** Whether the pod may get the GPU, if a container suits its model. */
  isOpen(gpu: Gpu): boolean {
    return gpu.healthy && !gpu.drained && this.isNamed(gpu);
  }

  suitsModel(index: number, model: Model): boolean {
    return this.takes(index, model) < Number.POSITIVE_INFINITY;
  }

  /**
   * The slots of a GPU that the container takes: those that it requests, or more for the time that
   * it asks for. Infinity if such a GPU cannot serve it.
   */
  takes(index: number, model: Model): number {
    const row = this.#takes[index] as (number | undefined)[];
    const known = row[model.id];
    if (known !== undefined) return known;
    const need = this.needs[index] as Need;
    const fits =
      this.isType(model) &&
      need.mode === model.mode &&
      need.slots <= model.mostSlots &&
      servesCount(need, model) &&
      holdsMemory(need, model) &&
      givesCores(need, model);
    const slots = fits ? slotsOn(need, model) : Number.POSITIVE_INFINITY;
    row[model.id] = slots;
    return slots;
  }

  isType({ lowerName }: Model): boolean {
    return this.#choice.isType(lowerName);
  }

  isNamed(gpu: Gpu): boolean {
    const known = this.#named.get(gpu);
    if (known !== undefined) return known;
    const isNamed = this.#choice.isNamed(gpu.lowerUuid);
    this.#named.set(gpu, isNamed);
    return isNamed;
  }

  /** Whether it depends on the UUIDs of GPUs, which are on one node only. */
  get namesGpus(): boolean {
    return this.request.gpuUuids.length > 0;
  }

  strategy(usual: Strategy): Strategy {
    return this.request.placement ?? usual;
  }
}

/** A pod without a mode gets exclusive GPUs, where no fault of another tenant affects it. */
function needOf(
  { container, init, slots, gpus, memory, cores, mode = 'exclusive' }: ContainerRequest,
  slotCores: number | undefined,
): Need {
  const each = slots / gpus;
  const time =
    slotCores === undefined
      ? { cores: undefined, mostCores: 0 }
      : { cores, mostCores: each * slotCores };
  return { container, init, slots: each, gpus, memory, ...time, mode };
}

export function holdsMemory({ memory, slots }: Need, model: Model): boolean {
  return memory === undefined || memory <= slots * model.slotMemory;
}

/** Memory of programs that see several GPUs cannot leave an oversubscribed one. */
export function servesCount({ gpus }: Need, { oversubscribed }: Model): boolean {
  return gpus === 1 || !oversubscribed;
}

/** Percent of the time of such a GPU that the container may take. */
export function coresOf({ slots, mostCores }: Need, model: Model): number {
  return Math.min(100, Math.max(mostCores, Math.floor((100 * slots) / model.slots)));
}

export function givesCores(need: Need, model: Model): boolean {
  return need.cores === undefined || need.cores <= coresOf(need, model);
}

/** The larger of its parts of memory and time, so that neither is promised twice. */
function slotsOn({ slots, cores = 0 }: Need, model: Model): number {
  return Math.max(slots, Math.ceil((cores * model.slots) / 100));
}
