import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { nvidiaSmiIn } from '@nvidia-virtual/node-state/paths';
import { systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere } from '@nvidia-virtual/service/files';
import type { Logger } from 'pino';
import { resolveUnder } from '../host/links.js';
import type { Backend } from './backend.js';

/** Where nvidia-smi is, from the directory of the driver's libraries. */
const PLACES = ['../bin/nvidia-smi', '../../bin/nvidia-smi'];

/**
 * Copies the host's nvidia-smi into the state directory, for containers (docs/nvml.md). A mount of
 * the host's own file would prevent containers from restarting during a driver update. Without
 * nvidia-smi on the host, an earlier copy stays: containers have it mounted.
 * @param root path of the host's root directory in this container
 */
export function copyNvidiaSmi(
  { kind, driver }: Backend,
  state: string,
  root: string,
  logger: Logger,
): void {
  if (kind !== 'real') return;
  const found = PLACES.map((place) => fileIn(root, path.resolve(path.dirname(driver), place))).find(
    (file) => file !== undefined,
  );
  if (found === undefined) {
    const directory = path.dirname(driver);
    logger.info(`Containers get no new nvidia-smi: ${describe(directory)} do not exist.`);
    return;
  }
  try {
    replace(nvidiaSmiIn(state), readFileSync(found));
  } catch (error) {
    logger.warn(`${found} could not be copied for containers: ${systemReason(error)}.`);
  }
}

function describe(libraries: string): string {
  return PLACES.map((place) => path.resolve(libraries, place)).join(' and ');
}

function replace(file: string, content: Buffer): void {
  if (readIfThere(file) !== undefined && readFileSync(file).equals(content)) return;
  const unfinished = path.join(path.dirname(file), `.new-${path.basename(file)}`);
  writeFileSync(unfinished, content);
  chmodSync(unfinished, 0o755);
  renameSync(unfinished, file);
}

/** The file that a path of the host means; undefined: there is none. Debian has links here. */
function fileIn(root: string, file: string): string | undefined {
  const found = resolveUnder(root, file);
  if (found === undefined) return undefined;
  const seen = path.join(root, found);
  return statSync(seen).isFile() ? seen : undefined;
}
