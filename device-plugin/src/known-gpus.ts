import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import { systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import { PluginError } from './errors.js';
import { isUsed, type SlotUser } from './slots.js';

/** A GPU as last reported by gpu-proxy. */
export interface KnownGpu extends Omit<InventoryGpu, 'healthy'> {
  /** The reason why it is unhealthy; empty: it is healthy. */
  readonly unhealthy: string;
}

/** The answer of gpu-proxy. */
export interface Listing {
  readonly gpus: readonly KnownGpu[];
  /** The configured selection of GPUs, only compared for equality. */
  readonly selection: string;
  /** Whether pods can move between them. */
  readonly movable?: boolean;
}

const GONE = new PluginError('GPU_GONE').message;

interface Kept extends Listing {
  readonly version: 1;
  readonly boot: string;
  readonly leaving: readonly KnownGpu[];
}

/**
 * The GPUs of the node, persisted in the state directory. A restarted plugin knows the slots at
 * once, before gpu-proxy and the driver are ready.
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
   * @param directory created if missing
   * @param boot id of this boot of the machine
   * @throws PluginError STATE_NOT_WRITTEN
   */
  static open(directory: string, boot: string): KnownGpus {
    const file = path.join(directory, 'gpus.json');
    return attempt(file, () => {
      mkdirSync(directory, { recursive: true, mode: 0o711 });
      return new KnownGpus(file, boot, { ...nothing(boot), ...parse(readIfThere(file)) });
    });
  }

  /** Empty until the first answer of gpu-proxy. */
  get all(): readonly KnownGpu[] {
    return this.#kept.gpus;
  }

  /** Whether pods can move between the GPUs. */
  get movable(): boolean {
    return this.#kept.movable === true;
  }

  /** GPUs removed from the node by configuration and still in use by containers. */
  get leaving(): readonly KnownGpu[] {
    return this.#kept.leaving;
  }

  /**
   * Applies an answer of gpu-proxy. A GPU that is no longer listed:
   * - after a change of the configured selection: is leaving;
   * - after a boot: was removed from the machine;
   * - otherwise: has failed and can recover.
   * @returns whether anything changed. @throws PluginError STATE_NOT_WRITTEN
   */
  take({ gpus: listed, selection, movable = false }: Listing): boolean {
    const known = this.#kept.boot === this.#boot ? this.#kept : nothing(this.#boot);
    const isListed = ({ uuid }: KnownGpu) => listed.some((gpu) => gpu.uuid === uuid);
    const missing = known.gpus.filter((gpu) => !isListed(gpu));
    const failed = known.selection === selection ? missing : [];
    const stay = known.gpus.filter((gpu) => isListed(gpu) || failed.includes(gpu));
    const gpus = stay.map(
      (gpu) => listed.find(({ uuid }) => uuid === gpu.uuid) ?? { ...gpu, unhealthy: GONE },
    );
    const added = listed.filter(({ uuid }) => !stay.some((gpu) => gpu.uuid === uuid));
    const leaving = [...known.leaving, ...missing.filter((gpu) => !failed.includes(gpu))].filter(
      (gpu) => !isListed(gpu),
    );
    return this.#keep({ ...known, selection, movable, gpus: [...gpus, ...added], leaving });
  }

  /**
   * Forgets leaving GPUs without slots in use and without containers. @throws PluginError
   * STATE_NOT_WRITTEN
   */
  forgetUnused(users: readonly SlotUser[]): void {
    this.#keep({ ...this.#kept, leaving: this.leaving.filter((gpu) => isUsed(gpu, users)) });
  }

  /** @returns whether anything changed */
  #keep(now: Kept): boolean {
    if (isDeepStrictEqual(now, this.#kept)) return false;
    this.#kept = now;
    attempt(this.#file, () =>
      writeFileAtomically(this.#file, JSON.stringify(now), { durable: true }),
    );
    return true;
  }
}

function nothing(boot: string): Kept {
  return { version: 1, boot, selection: '', gpus: [], leaving: [] };
}

/** Undefined for a broken file: gpu-proxy reports the GPUs again. */
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
