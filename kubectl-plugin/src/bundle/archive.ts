import { writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { systemReason } from '@nvidia-virtual/service/errors';
import { pack } from 'tar-stream';
import { PluginError } from '../errors.js';

/** Path and content of a file. */
export type Entry = readonly [path: string, content: string];

/**
 * Writes a .tar.gz that only its owner may read. @throws PluginError BUNDLE_NOT_WRITTEN, also if
 * the file exists
 */
export async function writeArchive(file: string, entries: readonly Entry[]): Promise<void> {
  const archive = pack();
  for (const [name, content] of entries) archive.entry({ name, mode: 0o600 }, content);
  archive.finalize();
  const compressed = gzipSync(await buffer(archive));
  try {
    writeFileSync(file, compressed, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw new PluginError('BUNDLE_NOT_WRITTEN', { file, reason: systemReason(error) });
  }
}
