import {
  type ContainerRequest,
  type PodRequest,
  peak,
} from '@nvidia-virtual/kube-common/pod-request';
import type { SharingMode } from '@nvidia-virtual/ledger';
import type { Gpu } from '../cluster/gpu.js';
import type { Model } from '../cluster/model.js';

/** What one container needs: `slots` on each of `gpus` different GPUs. */
export interface Need {
  readonly container: string;
  readonly init: boolean;
  readonly slots: number;
  readonly gpus: number;
  readonly memory: number | undefined;
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
  /** In lower case, as the UUIDs: matching is case-insensitive. */
  readonly types: readonly string[];
  readonly uuids: ReadonlySet<string>;
  /** By need and model. */
  readonly #fits: (boolean | undefined)[][];

  constructor(readonly request: PodRequest) {
    this.needs = request.containers.map(needOf);
    this.pieces = this.needs
      .flatMap(({ init, gpus, slots }, index) =>
        init ? [] : Array.from({ length: gpus }, () => ({ index, slots })),
      )
      .sort((a, b) => b.slots - a.slots || a.index - b.index);
    this.types = request.gpuTypes.map((type) => type.toLowerCase());
    this.uuids = new Set(request.gpuUuids.map((uuid) => uuid.toLowerCase()));
    this.#fits = this.needs.map(() => []);
  }

  /** Whether the empty GPU could serve the container. */
  suits(index: number, gpu: Gpu): boolean {
    return gpu.healthy && this.isNamed(gpu) && this.suitsModel(index, gpu.model);
  }

  suitsModel(index: number, model: Model): boolean {
    const row = this.#fits[index] as (boolean | undefined)[];
    const known = row[model.id];
    if (known !== undefined) return known;
    const need = this.needs[index] as Need;
    const fits =
      this.isType(model) &&
      need.mode === model.mode &&
      need.slots <= model.slots &&
      holdsMemory(need, model);
    row[model.id] = fits;
    return fits;
  }

  isType(model: Model): boolean {
    return this.types.length === 0 || this.types.some((type) => model.lowerName.includes(type));
  }

  isNamed(gpu: Gpu): boolean {
    return this.uuids.size === 0 || this.uuids.has(gpu.lowerUuid);
  }

  /**
   * Upper bound of the slots that the pod can hold of this GPU at a time. Ignores health.
   */
  most(gpu: Gpu): number {
    if (!this.isNamed(gpu)) return 0;
    return peak(
      this.needs.map((need, index) => ({
        init: need.init,
        slots: this.suitsModel(index, gpu.model) ? need.slots : 0,
      })),
    );
  }
}

/** A pod without a mode gets exclusive GPUs, where no fault of another tenant affects it. */
function needOf({
  container,
  init,
  slots,
  gpus,
  memory,
  mode = 'exclusive',
}: ContainerRequest): Need {
  return { container, init, slots: slots / gpus, gpus, memory, mode };
}

export function holdsMemory({ memory, slots }: Need, model: Model): boolean {
  return memory === undefined || memory <= slots * model.slotMemory;
}
