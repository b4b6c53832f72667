import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { systemReason } from '@nvidia-virtual/gpu-proxy/errors';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/gpu-proxy/files';
import type { InventoryGpu } from '@nvidia-virtual/kubernetes/assignment';
import { PluginError } from './errors.js';
import { isUsed, type SlotUser } from './slots.js';

/** A GPU as gpu-proxy told of it last. */
export interface KnownGpu extends Omit<InventoryGpu, 'healthy'> {
  /** Why it cannot be used; empty: it can. */
  readonly unhealthy: string;
}

/** What gpu-proxy lists. */
export interface Listing {
  readonly gpus: readonly KnownGpu[];
  /** Which GPUs it is configured to have: another text, other GPUs. */
  readonly selection: string;
}

const GONE = new PluginError('GPU_GONE').message;

interface Kept extends Listing {
  readonly version: 1;
  readonly boot: string;
  readonly leaving: readonly KnownGpu[];
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
      return new KnownGpus(file, boot, { ...nothing(boot), ...parse(readIfThere(file)) });
    });
  }

  /** Empty until gpu-proxy has listed them for the first time. */
  get all(): readonly KnownGpu[] {
    return this.#kept.gpus;
  }

  /** Those that are the node's no more and that containers still have something of. */
  get leaving(): readonly KnownGpu[] {
    return this.#kept.leaving;
  }

  /**
   * What gpu-proxy lists now. A GPU that it listed before and lists no more has failed, and may come back; when gpu-proxy is configured to have
   * other GPUs, it leaves; after a boot without it, it was taken out of the machine.
   * @returns whether anything changed. @throws PluginError STATE_NOT_WRITTEN
   */
  take({ gpus: listed, selection }: Listing): boolean {
    const known = this.#kept.boot === this.#boot ? this.#kept : nothing(this.#boot);
    const isListed = ({ uuid }: KnownGpu) => listed.some((gpu) => gpu.uuid === uuid);
    const missing = known.gpus.filter((gpu) => !isListed(gpu));
    const failed = known.selection === selection ? missing : [];
    const stay = known.gpus.filter((gpu) => isListed(gpu) || failed.includes(gpu));
    const gpus = stay.map((gpu) => listed.find(({ uuid }) => uuid === gpu.uuid) ?? { ...gpu, unhealthy: GONE });
    const added = listed.filter(({ uuid }) => !stay.some((gpu) => gpu.uuid === uuid));
    const leaving = [...known.leaving, ...missing.filter((gpu) => !failed.includes(gpu))].filter((gpu) => !isListed(gpu));
    return this.#keep({ ...known, selection, gpus: [...gpus, ...added], leaving });
  }

  /** What leaves is gone once nobody has a slot of it, nor runs on it. @throws PluginError STATE_NOT_WRITTEN */
  forgetUnused(users: readonly SlotUser[]): void {
    this.#keep({ ...this.#kept, leaving: this.leaving.filter((gpu) => isUsed(gpu, users)) });
  }

  /** @returns whether it is anything else. */
  #keep(now: Kept): boolean {
    if (isDeepStrictEqual(now, this.#kept)) return false;
    this.#kept = now;
    attempt(this.#file, () => writeFileAtomically(this.#file, JSON.stringify(now), { durable: true }));
    return true;
  }
}

function nothing(boot: string): Kept {
  return { version: 1, boot, selection: '', gpus: [], leaving: [] };
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
