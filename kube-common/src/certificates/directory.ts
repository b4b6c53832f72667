import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { KeyPair } from './authority.js';

/**
 * The certificate that another program keeps in a directory, as a mounted Secret of type
 * kubernetes.io/tls has it. @throws Error with a sentence
 */
export function readKeyPair(directory: string): KeyPair {
  return { certificate: read(directory, 'tls.crt'), key: read(directory, 'tls.key') };
}

function read(directory: string, name: string): string {
  const file = path.join(directory, name);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(
      `${file} cannot be read: ${(error as Error).message}. Look at the Certificate that fills ` +
        'the Secret, for example with `kubectl describe certificate`.',
    );
  }
}
