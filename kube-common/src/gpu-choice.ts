import { isExcluded, type PodRequest } from './pod-request.js';

/** In lower case: matching is case-insensitive. */
interface Choice {
  readonly wanted: readonly string[];
  readonly excluded: readonly string[];
}

/** The GPUs that a pod accepts by their types and UUIDs. */
export class GpuChoice {
  readonly #types: Choice;
  readonly #uuids: Choice;

  constructor({ gpuTypes, gpuUuids }: Pick<PodRequest, 'gpuTypes' | 'gpuUuids'>) {
    this.#types = choiceOf(gpuTypes);
    this.#uuids = choiceOf(gpuUuids);
  }

  /** @param lowerName name of a GPU in lower case */
  isType(lowerName: string): boolean {
    return allows(this.#types, (type) => lowerName.includes(type));
  }

  /** @param lowerUuid in lower case */
  isNamed(lowerUuid: string): boolean {
    return allows(this.#uuids, (uuid) => uuid === lowerUuid);
  }
}

function choiceOf(entries: readonly string[]): Choice {
  const lower = entries.map((entry) => entry.toLowerCase());
  return {
    wanted: lower.filter((entry) => !isExcluded(entry)),
    excluded: lower.filter(isExcluded).map((entry) => entry.slice(1).trim()),
  };
}

function allows({ wanted, excluded }: Choice, matches: (entry: string) => boolean): boolean {
  return (wanted.length === 0 || wanted.some(matches)) && !excluded.some(matches);
}
