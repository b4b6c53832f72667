import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import path from 'node:path';
import { MAX_SESSIONS } from '@nvidia-virtual/node-state/allocation-options';
import { ExportTable } from './export-table.js';

/**
 * The memory account of one allocation: a small file that all its workers map and update. gpu-proxy
 * creates the file, assigns a slot to each worker, and clears the slot after the worker's exit.
 * native/worker/accounts/quota.h defines the layout.
 */
const MAGIC = 0x4e565131; // "NVQ1"
const VERSION = 2;
const FILE_BYTES = 8192;
const LIMIT_OFFSET = 8;
const PEAK_OFFSET = 128;
const SLOTS_OFFSET = 256;
const SLOT_BYTES = 32;

/** Resources of one worker. Device memory in bytes, unless noted. */
export interface SlotUse {
  readonly used: number;
  readonly peak: number;
  /** Bytes of pinned host memory. */
  readonly pinned: number;
  /** Open handles of its program. */
  readonly handles: number;
  /** Threads of its program that use CUDA. */
  readonly threads: number;
}

export class QuotaFile {
  readonly path: string;
  readonly #fd: number;
  /** Undefined for an allocation of a version without exports. */
  readonly #exports: ExportTable | undefined;
  readonly #taken = new Set<number>();

  private constructor(file: string, fd: number) {
    this.path = file;
    this.#fd = fd;
    this.#exports = ExportTable.open(path.dirname(file));
  }

  /** Creates the file, which must not exist. `limit` in bytes; 0: no limit. */
  static create(file: string, limit: number): QuotaFile {
    const fd = openSync(file, 'wx+', 0o600);
    const header = Buffer.alloc(16);
    header.writeUInt32LE(MAGIC, 0);
    header.writeUInt32LE(VERSION, 4);
    header.writeBigUInt64LE(BigInt(limit), LIMIT_OFFSET);
    ftruncateSync(fd, FILE_BYTES);
    writeSync(fd, header, 0, header.length, 0);
    return new QuotaFile(file, fd);
  }

  /**
   * Takes over the file of an earlier gpu-proxy. The caller claims the slots of its live workers
   * with claimSlot(), then calls clearOthers().
   */
  static open(file: string): QuotaFile {
    const quota = new QuotaFile(file, openSync(file, 'r+'));
    const header = quota.#read(0, 8);
    if (header.readUInt32LE(0) === MAGIC && header.readUInt32LE(4) === VERSION) return quota;
    quota.close();
    throw new Error('it is not a quota file of this version');
  }

  /** Claims the slot of an earlier gpu-proxy's worker. False if it is taken. */
  claimSlot(slot: number): boolean {
    if (this.#taken.has(slot)) return false;
    this.#taken.add(slot);
    return true;
  }

  /** Clears all slots that are not taken. */
  clearOthers(): void {
    const slots = Array.from({ length: MAX_SESSIONS }, (_, slot) => slot);
    this.#clear(slots.filter((slot) => !this.#taken.has(slot)));
  }

  /** Takes a free slot; undefined if all are taken. */
  takeSlot(): number | undefined {
    for (let slot = 0; slot < MAX_SESSIONS; slot++) {
      if (this.#taken.has(slot)) continue;
      this.#taken.add(slot);
      return slot;
    }
    return undefined;
  }

  /** Clears and frees a slot. Requires that its worker has exited. */
  releaseSlot(slot: number): void {
    this.#clear([slot]);
    this.#taken.delete(slot);
  }

  readSlot(slot: number): SlotUse {
    const bytes = this.#read(slotOffset(slot), SLOT_BYTES);
    const [used = 0, peak = 0, pinned = 0] = [0, 8, 16].map((at) =>
      Number(bytes.readBigUInt64LE(at)),
    );
    return { used, peak, pinned, handles: bytes.readUInt32LE(24), threads: bytes.readUInt32LE(28) };
  }

  /** Peak of readUsed(), in bytes. */
  readPeak(): number {
    return Number(this.#read(PEAK_OFFSET, 8).readBigUInt64LE(0));
  }

  /** Bytes in use by all workers together. */
  readUsed(): number {
    let used = this.#exports?.readOrphaned() ?? 0;
    const slots = this.#read(SLOTS_OFFSET, SLOT_BYTES * MAX_SESSIONS);
    for (let slot = 0; slot < MAX_SESSIONS; slot++)
      used += Number(slots.readBigUInt64LE(slot * SLOT_BYTES));
    return used;
  }

  /** Closes the descriptors. The files stay. */
  close(): void {
    this.#exports?.close();
    closeSync(this.#fd);
  }

  /** Charges exported memory to its other holders first, then refunds the slots. */
  #clear(slots: readonly number[]): void {
    this.#exports?.clearSlots(slots);
    for (const slot of slots)
      writeSync(this.#fd, Buffer.alloc(SLOT_BYTES), 0, SLOT_BYTES, slotOffset(slot));
  }

  #read(offset: number, bytes: number): Buffer {
    const buffer = Buffer.alloc(bytes);
    readSync(this.#fd, buffer, 0, bytes, offset);
    return buffer;
  }
}

function slotOffset(slot: number): number {
  return SLOTS_OFFSET + slot * SLOT_BYTES;
}
