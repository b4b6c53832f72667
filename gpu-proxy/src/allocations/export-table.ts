import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';

/** The directory of an allocation in which its workers share a table and have sockets. */
export const SHARING = 'sharing';
/** Workers add and remove their own files. They cannot replace the table, which belongs to root. */
const SHARING_MODE = 0o1770;
const FILE = 'exports';

/** native/worker/accounts/export_table.cpp defines the layout. */
const MAGIC = 0x4e565831; // "NVX1"
const VERSION = 1;
const USED_OFFSET = 12;
const ENTRIES_OFFSET = 256;
const ENTRY_BYTES = 384;
const ENTRIES = 4096;
const BYTES_OFFSET = 16;
const OWNER_OFFSET = 24;
const MARKS_OFFSET = 96;
const MARKS = 240;
const OWNER_MARK = 2;
const NO_MARKS = Buffer.alloc(MARKS);

/**
 * Memory and events that workers of an allocation export to each other. Each worker marks the
 * entries that it holds; gpu-proxy clears the marks of a worker after its exit.
 */
export class ExportTable {
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** Creates the directory and the table in an allocation's directory. */
  static make(directory: string): void {
    const sharing = path.join(directory, SHARING);
    mkdirSync(sharing, { mode: 0o700 });
    chmodSync(sharing, SHARING_MODE); // which the umask would change
    const file = path.join(sharing, FILE);
    const fd = openSync(file, 'wx', 0o600);
    ftruncateSync(fd, ENTRIES_OFFSET + ENTRIES * ENTRY_BYTES);
    const header = Buffer.alloc(8);
    header.writeUInt32LE(MAGIC, 0);
    header.writeUInt32LE(VERSION, 4);
    writeSync(fd, header, 0, header.length, 0);
    closeSync(fd);
  }

  /** Opens the table of an allocation; undefined if a previous version made the directory. */
  static open(directory: string): ExportTable | undefined {
    const file = path.join(directory, SHARING, FILE);
    return existsSync(file) ? new ExportTable(openSync(file, 'r+')) : undefined;
  }

  /** Removes the sockets, and what else workers left there. Requires that none is left. */
  static clean(directory: string): void {
    const sharing = path.join(directory, SHARING);
    for (const name of readdirSync(sharing))
      if (name !== FILE) rmSync(path.join(sharing, name), { recursive: true, force: true });
  }

  /** Clears the marks of workers that have exited. Reads the table once: a full one has 1.5 MB. */
  clearSlots(slots: readonly number[]): void {
    this.#entries().forEach((entry, index) => {
      const marks = entry.subarray(MARKS_OFFSET, MARKS_OFFSET + MARKS);
      if (marks.equals(NO_MARKS)) return;
      const offset = ENTRIES_OFFSET + index * ENTRY_BYTES + MARKS_OFFSET;
      for (const slot of slots)
        if (marks[slot] !== 0) writeSync(this.#fd, Buffer.alloc(1), 0, 1, offset + slot);
    });
  }

  /** Bytes that workers hold of memory whose owner has freed it, or has exited. */
  readOrphaned(): number {
    return this.#entries()
      .filter((entry) => {
        const marks = entry.subarray(MARKS_OFFSET, MARKS_OFFSET + MARKS);
        const owned = marks[entry.readUInt32LE(OWNER_OFFSET)] === OWNER_MARK;
        return !owned && !marks.equals(NO_MARKS);
      })
      .reduce((sum, entry) => sum + Number(entry.readBigUInt64LE(BYTES_OFFSET)), 0);
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** The entries that were ever used. */
  #entries(): Buffer[] {
    const used = Math.min(this.#read(USED_OFFSET, 4).readUInt32LE(0), ENTRIES);
    const bytes = this.#read(ENTRIES_OFFSET, used * ENTRY_BYTES);
    return Array.from({ length: used }, (_, index) =>
      bytes.subarray(index * ENTRY_BYTES, (index + 1) * ENTRY_BYTES),
    );
  }

  #read(offset: number, bytes: number): Buffer {
    const buffer = Buffer.alloc(bytes);
    readSync(this.#fd, buffer, 0, bytes, offset);
    return buffer;
  }
}
