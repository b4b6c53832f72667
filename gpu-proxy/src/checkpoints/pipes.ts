import { chownSync, closeSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { ifThere } from '@nvidia-virtual/service/files';

/** open(2) on Linux; not in `constants`. Opens what a link of /proc leads to, whatever it is. */
const O_PATH = 0o10000000;

/**
 * Gives its pipes to the user of a process that CRIU has made: they are root's then. The driver
 * opens its own one by its path (580.159). The process may exchange its files meanwhile, so each is
 * taken before it is examined.
 */
export function givePipes(pid: number, uid: number): void {
  for (const number of readdirSync(`/proc/${pid}/fd`)) {
    const file = ifThere(() => openSync(`/proc/${pid}/fd/${number}`, O_PATH));
    if (file === undefined) continue;
    try {
      if (fstatSync(file).isFIFO()) chownSync(`/proc/self/fd/${file}`, uid, uid);
    } finally {
      closeSync(file);
    }
  }
}
