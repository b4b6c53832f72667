import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { systemReason } from '@nvidia-virtual/gpu-proxy/errors';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/gpu-proxy/files';
import type { InventoryGpu } from '@nvidia-virtual/kubernetes/assignment';
import { PluginError } from './errors.js';

/** A GPU as gpu-proxy told of it last. */
export interface KnownGpu extends Omit<InventoryGpu, 'healthy'> {
  /** Why it cannot be used; empty: it can. */
  readonly unhealthy: string;
}

interface Kept {
  readonly version: 1;
  readonly boot: string;
  readonly gpus: readonly KnownGpu[];
}

/**
 * The GPUs of the node, kept in the state directory: so the slots are known at once when the plugin starts again, before gpu-proxy and the driver
 * are there.
 */
export class KnownGpus {
  readonly #file: string;
  readonly #boot: string;
  #kept: Kept;

  private constructor(file: string, boot: string, kept: Kept) {
    this.#file = file;
    this.#boot = boot;
    this.#kept = kept;
  }

  /**
   * @param directory is made where it is missing.
   * @param boot id of this boot of the machine.
   * @throws PluginError STATE_NOT_WRITTEN
   */
  static open(directory: string, boot: string): KnownGpus {
    const file = path.join(directory, 'gpus.json');
    return attempt(file, () => {
      mkdirSync(directory, { recursive: true, mode: 0o711 });
      return new KnownGpus(file, boot, parse(readIfThere(file)) ?? { version: 1, boot, gpus: [] });
    });
  }

  /** Empty until gpu-proxy has listed them for the first time. */
  get all(): readonly KnownGpu[] {
    return this.#kept.gpus;
  }

  /**
   * What gpu-proxy lists now. A GPU that it listed before and lists no more has failed, and may come back; after a boot without it, it was taken
   * out of the machine.
   * @returns whether anything changed. @throws PluginError STATE_NOT_WRITTEN
   */
  take(listed: readonly KnownGpu[]): boolean {
    const former = this.#kept;
    const known = former.boot === this.#boot ? former.gpus : [];
    const fresh = new Map(listed.map((gpu) => [gpu.uuid, gpu]));
    const kept = known.map((gpu) => fresh.get(gpu.uuid) ?? { ...gpu, unhealthy: new PluginError('GPU_GONE').message });
    const added = listed.filter(({ uuid }) => !known.some((gpu) => gpu.uuid === uuid));
    const now: Kept = { version: 1, boot: this.#boot, gpus: [...kept, ...added] };
    if (isDeepStrictEqual(now, former)) return false;
    this.#kept = now;
    attempt(this.#file, () => writeFileAtomically(this.#file, JSON.stringify(now), { durable: true }));
    return true;
  }
}

/** What cannot be read is as good as nothing: gpu-proxy tells it again. */
function parse(text: string | undefined): Kept | undefined {
  try {
    const kept = text === undefined ? undefined : (JSON.parse(text) as Kept);
    return kept?.version === 1 && Array.isArray(kept.gpus) ? kept : undefined;
  } catch {
    return undefined;
  }
}

function attempt<T>(file: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new PluginError('STATE_NOT_WRITTEN', { file, reason: systemReason(error) });
  }
}
