import { closeSync, readdirSync, writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { Addon } from '../host/addon.js';
import type { SealedReader, SealedWriter } from './sealed-file.js';

/** Precedes each content, after its own length. */
interface Header {
  readonly kind: 'file' | 'arena' | 'end';
  /** Of a file of CRIU. */
  readonly name?: string;
  readonly bytes: number;
}

const LENGTH_BYTES = 4;
const PIECE = 2 ** 20;
/** Names of CRIU's files. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$/;
const LOG = 'log';

/**
 * Writes the files of a directory, and the memory files with these handles.
 * @throws Error if a file could not be made again
 */
export async function pack(
  staging: string,
  arenas: readonly string[],
  { writer, addon }: { readonly writer: SealedWriter; readonly addon: Addon },
): Promise<void> {
  for (const name of readdirSync(staging).filter((each) => each !== LOG)) {
    if (!NAME.test(name)) throw new Error(`CRIU has written a file of another kind: ${name}`);
    await packFile(path.join(staging, name), { kind: 'file', name }, writer);
  }
  for (const handle of arenas) {
    const fd = addon.findMemoryFile(handle);
    if (fd === undefined) continue; // an arena that was given up before
    try {
      await packFile(`/proc/self/fd/${fd}`, { kind: 'arena' }, writer);
    } finally {
      closeSync(fd);
    }
  }
  await writeHeader({ kind: 'end', bytes: 0 }, writer);
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
    for (let left = bytes; left > 0; ) {
      const piece = await readPiece(file, Math.min(left, PIECE));
      await writer.write(piece);
      left -= piece.length;
    }
  } finally {
    await file.close();
  }
}

async function readPiece(file: FileHandle, most: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(most), 0, most, null);
  if (bytesRead === 0) throw new Error('a file became shorter while it was read');
  return buffer.subarray(0, bytesRead);
}

async function writeHeader(header: Header, writer: SealedWriter): Promise<void> {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  await writer.write(Buffer.concat([length, text]));
}

/**
 * Reads what pack() has written, to the end.
 * @param makeArena returns the descriptor of a memory file of this size
 * @throws Error if something is not authentic
 */
export async function unpack(
  reader: SealedReader,
  staging: string,
  makeArena: (bytes: number) => Promise<number>,
): Promise<void> {
  for (let header = await readHeader(reader); header.kind !== 'end'; ) {
    if (header.kind === 'arena') {
      await copy(reader, header.bytes, await makeArena(header.bytes));
    } else {
      const file = await open(path.join(staging, header.name ?? ''), 'wx', 0o600);
      await copy(reader, header.bytes, file.fd).finally(() => file.close());
    }
    header = await readHeader(reader);
  }
  reader.finish();
}

/** Both are in memory, so the writes do not wait for a disk. */
async function copy(reader: SealedReader, bytes: number, fd: number): Promise<void> {
  for (let at = 0; at < bytes; ) {
    const piece = await reader.read(Math.min(bytes - at, PIECE));
    for (let written = 0; written < piece.length; )
      written += writeSync(fd, piece, written, piece.length - written, at + written);
    at += piece.length;
  }
}

async function readHeader(reader: SealedReader): Promise<Header> {
  const length = (await reader.read(LENGTH_BYTES)).readUInt32BE();
  return JSON.parse((await reader.read(length)).toString()) as Header;
}
