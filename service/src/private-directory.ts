import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ProxyError, systemReason } from './errors.js';

/** Creates a directory that only this user can enter, for the socket and quota file of a proxy. */
export function makePrivateDirectory(parents: readonly string[] = defaultParents()): string {
  let failure: unknown;
  for (const parent of parents) {
    try {
      return mkdtempSync(path.join(parent, 'nvidia-virtual-'));
    } catch (error) {
      failure = error;
    }
  }
  throw new ProxyError('DIRECTORY_NOT_MADE', {
    parent: parents.join(' or '),
    reason: systemReason(failure),
  });
}

/**
 * XDG_RUNTIME_DIR can belong to another user (sudo) or be missing. The temporary directory is the
 * fallback.
 */
function defaultParents(): string[] {
  const runtime = process.env['XDG_RUNTIME_DIR'];
  return runtime ? [runtime, tmpdir()] : [tmpdir()];
}
