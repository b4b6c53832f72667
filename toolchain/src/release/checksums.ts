import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Writes SHA256SUMS of the files of a directory, for `sha256sum --check`. @returns its path */
export async function writeChecksums(directory: string): Promise<string> {
  const lines: string[] = [];
  for (const name of readdirSync(directory).sort()) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(path.join(directory, name)), hash);
    lines.push(`${hash.digest('hex')}  ${name}\n`);
  }
  const file = path.join(directory, 'SHA256SUMS');
  writeFileSync(file, lines.join(''));
  return file;
}
