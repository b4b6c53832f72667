import { readFileSync, writeFileSync } from 'node:fs';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Launcher } from '../host/launcher.js';

/** Which memory files get huge pages. One value of several is in brackets. */
const SETTING = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';

/**
 * Lets arenas have huge pages: where no memory file may have them, those may that ask for them. All
 * other values stay as they are.
 */
export function allowHugePages(launcher: Launcher, logger: Logger): void {
  const file = launcher.seen(SETTING);
  try {
    if (!readFileSync(file, 'utf8').includes('[never]')) return;
    writeFileSync(file, 'advise');
    logger.info(`${SETTING} was never and is advise now, so arenas get huge pages`);
  } catch (error) {
    logger.warn(
      `Arenas get no huge pages, so the first suspension of a program takes longer: ${SETTING} ` +
        `cannot be set: ${systemReason(error)}.`,
    );
  }
}
