import { open } from 'node:fs/promises';
import path from 'node:path';
import { printable } from '@nvidia-virtual/service/printable';

interface MappedLibrary {
  readonly file: string;
  readonly inode: number;
}

/** The libraries of the driver that a process executes, by inode, and whether it runs with musl. */
interface MappedLibraries {
  readonly driver: Map<number, MappedLibrary>;
  musl: boolean;
}

/** A library of the driver, also if its file was deleted. */
const DRIVER = /\/lib(?:cuda|nvidia-ml)\.so(?:\.[\d.]+)?(?: \(deleted\))?$/;
const MUSL = /\/ld-musl-[\w-]+\.so\.1$/;
/** address permissions offset device inode path; a file that is only read is no library. */
const LINE = /^\S+ ..x. \S+ \S+ (\d+) +(\/.*)$/;
/** Limit on what is read of a process: a hostile one can have very many mappings. */
const MOST_BYTES = 1024 * 1024;
/** The kernel gives at most a page in each read, and no longer path. */
const PART_BYTES = 8192;
const LONGEST_PATH = 200;

/** The libraries of the driver, and the loader of musl, in lines of /proc/PID/maps. */
export function parseMaps(
  lines: readonly string[],
  found: MappedLibraries = { driver: new Map(), musl: false },
): MappedLibraries {
  for (const line of lines) {
    const [, inode, file = ''] = LINE.exec(line) ?? [];
    if (DRIVER.test(file))
      found.driver.set(Number(inode), { file: shortened(file), inode: Number(inode) });
    found.musl ||= MUSL.test(file);
  }
  return found;
}

/** Keeps one part of the file at a time. @throws a system error if the process has ended */
export async function readMaps(pid: number): Promise<MappedLibraries> {
  const file = await open(`/proc/${pid}/maps`);
  const buffer = Buffer.alloc(PART_BYTES);
  const found = parseMaps([]);
  try {
    let rest = '';
    for (let size = 0; size < MOST_BYTES; ) {
      const { bytesRead } = await file.read(buffer, 0, PART_BYTES);
      if (bytesRead === 0) break;
      const lines = (rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
      rest = (lines.pop() ?? '').slice(-PART_BYTES);
      parseMaps(lines, found);
      size += bytesRead;
    }
    return found;
  } finally {
    await file.close();
  }
}

/** The tenant chose the path. Keeps its end, which has the name. */
function shortened(file: string): string {
  const text = printable(path.posix.normalize(file));
  return text.length > LONGEST_PATH ? `...${text.slice(-LONGEST_PATH)}` : text;
}
