import { open } from 'node:fs/promises';
import path from 'node:path';

export interface MappedLibrary {
  readonly file: string;
  readonly inode: number;
}

/** Also as a deleted file. */
const DRIVER = /\/lib(?:cuda|nvidia-ml)\.so(?:\.[\d.]+)?(?: \(deleted\))?$/;
const MUSL = /\/ld-musl-[\w-]+\.so\.1$/;
/** address permissions offset device inode path */
const LINE = /^\S+ \S+ \S+ \S+ (\d+) +(\/.*)$/;
/** Limit on what is read of a process: a hostile one can have very many mappings. */
const MOST_BYTES = 1024 * 1024;
const LONGEST_PATH = 200;

/** The libraries of the driver, and the loader of musl, in the text of /proc/PID/maps. */
export function parseMaps(maps: string): { driver: MappedLibrary[]; musl: boolean } {
  const driver = new Map<number, MappedLibrary>();
  let musl = false;
  for (const line of maps.split('\n')) {
    const [, inode, file = ''] = LINE.exec(line) ?? [];
    if (DRIVER.test(file))
      driver.set(Number(inode), { file: printable(file), inode: Number(inode) });
    musl ||= MUSL.test(file);
  }
  return { driver: [...driver.values()], musl };
}

/** @throws a system error if the process has ended */
export async function readMaps(pid: number): Promise<string> {
  const file = await open(`/proc/${pid}/maps`);
  try {
    const parts: Buffer[] = [];
    for (let size = 0; size < MOST_BYTES; ) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024));
      if (bytesRead === 0) break;
      parts.push(buffer.subarray(0, bytesRead));
      size += bytesRead;
    }
    return Buffer.concat(parts).toString('latin1');
  } finally {
    await file.close();
  }
}

/** The tenant chose the path. Keeps its end, which has the name. */
function printable(file: string): string {
  const text = path.posix.normalize(file).replaceAll(/[^\x20-\x7e]/g, '?');
  return text.length > LONGEST_PATH ? `...${text.slice(-LONGEST_PATH)}` : text;
}
