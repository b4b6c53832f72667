import { closeSync, fstatSync, readdirSync, statSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { Addon } from '../host/addon.js';
import type { SealedReader, SealedWriter } from './sealed-file.js';

/** Precedes each content, after its own length. */
interface Header {
  readonly kind: 'begin' | 'file' | 'arena' | 'end';
  /** Name of a file of CRIU. */
  readonly name?: string;
  /** Inode number of an arena, by which the keeper finds its place. */
  readonly inode?: string;
  /** Bytes of the content. In `begin`: of all files of CRIU together. */
  readonly bytes: number;
}

const LENGTH_BYTES = 4;
const PIECE = 2 ** 20;
const PAGE = 4096;
/** Names of CRIU's files. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$/;
/**
 * CRIU's files that are not kept: its log, and the cgroups and clocks of the process. A restored
 * process gets the cgroups of its pod and the clocks of the node.
 */
export const LEFT_OUT = /\.log$|^cgroup\.img$|^timens-/;

interface PackOptions {
  readonly writer: SealedWriter;
  readonly addon: Addon;
  /** Called before so many bytes are written. @throws Error if there is no room */
  admit(bytes: number): void;
}

/**
 * Writes the files of a directory, and the memory files with these handles.
 * @throws Error if a file could not be made again
 */
export async function pack(
  staging: string,
  arenas: readonly string[],
  { writer, addon, admit }: PackOptions,
): Promise<void> {
  const names = readdirSync(staging).filter((each) => !LEFT_OUT.test(each));
  const bytes = bytesOf(names.map((name) => path.join(staging, name)));
  admit(bytes);
  await writeHeader({ kind: 'begin', bytes }, writer);
  for (const name of names) {
    if (!NAME.test(name)) throw new Error(`CRIU has written a file of another kind: ${name}`);
    await packFile(path.join(staging, name), { kind: 'file', name }, writer);
  }
  for (const handle of arenas) {
    const fd = addon.findMemoryFile(handle);
    if (fd === undefined) continue; // an arena that was given up before
    try {
      admit(fstatSync(fd).size);
      const inode = String(fstatSync(fd, { bigint: true }).ino);
      await packFile(`/proc/self/fd/${fd}`, { kind: 'arena', inode }, writer);
    } finally {
      closeSync(fd);
    }
  }
  await writeHeader({ kind: 'end', bytes: 0 }, writer);
}

/** Memory of the files in bytes. A file in memory has whole pages. */
function bytesOf(files: readonly string[]): number {
  const pages = files.map((file) => Math.ceil(statSync(file).size / PAGE));
  return pages.reduce((sum, each) => sum + each * PAGE, 0);
}

async function packFile(
  from: string,
  header: Omit<Header, 'bytes'>,
  writer: SealedWriter,
): Promise<void> {
  const file = await open(from, 'r');
  try {
    const { size: bytes } = await file.stat();
    await writeHeader({ ...header, bytes }, writer);
    const piece = Buffer.allocUnsafeSlow(Math.min(bytes, PIECE));
    for (let left = bytes; left > 0; ) {
      const { bytesRead } = await file.read(piece, 0, Math.min(left, PIECE), null);
      if (bytesRead === 0) throw new Error('a file became shorter while it was read');
      await writer.write(piece.subarray(0, bytesRead));
      left -= bytesRead;
    }
  } finally {
    await file.close();
  }
}

async function writeHeader(header: Header, writer: SealedWriter): Promise<void> {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  await writer.write(Buffer.concat([length, text]));
}

/** Memory of the node. */
interface Memory {
  /**
   * Returns the descriptor of a memory file of this size.
   * @param inode number of the file that had its content
   */
  makeArena(bytes: number, inode: string): Promise<number>;
  /** Gives an empty file its pages. */
  populate(fd: number, bytes: number): Promise<void>;
}

/** Larger files are not charged to this process. */
const SMALL = 2 ** 20;

/** Begins to read what pack() has written. @returns how many bytes unpack() needs for files */
export async function readBegin(reader: SealedReader): Promise<number> {
  return (await readHeader(reader)).bytes;
}

/**
 * Reads the rest of it.
 * @throws Error if something is not authentic
 */
export async function unpack(reader: SealedReader, staging: string, memory: Memory): Promise<void> {
  for (let header = await readHeader(reader); header.kind !== 'end'; ) {
    if (header.kind === 'arena') {
      const { bytes, inode = '' } = header;
      await copy(reader, bytes, await memory.makeArena(bytes, inode));
    } else {
      const file = await open(path.join(staging, header.name ?? ''), 'wx+', 0o600);
      try {
        if (header.bytes > SMALL) await memory.populate(file.fd, header.bytes);
        await copy(reader, header.bytes, file.fd);
      } finally {
        await file.close();
      }
    }
    header = await readHeader(reader);
  }
  reader.finish();
}

/** Both are in memory, so the writes do not wait for a disk. */
async function copy(reader: SealedReader, bytes: number, fd: number): Promise<void> {
  for (let at = 0; at < bytes; ) {
    const piece = await reader.readSome(bytes - at);
    for (let written = 0; written < piece.length; )
      written += writeSync(fd, piece, written, piece.length - written, at + written);
    at += piece.length;
  }
}

async function readHeader(reader: SealedReader): Promise<Header> {
  const length = (await reader.read(LENGTH_BYTES)).readUInt32BE();
  return JSON.parse((await reader.read(length)).toString()) as Header;
}
