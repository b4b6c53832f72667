import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Identifies the owner of a node by a random word in its state directory, created if missing. A
 * restarted proxy is the same owner and takes over at once. Another machine is another owner, even
 * with the same node name.
 */
export function ownerOf(stateDirectory: string): string {
  const file = path.join(stateDirectory, 'ledger-owner');
  const word = randomBytes(16).toString('hex');
  const whole = `${file}.${word}`;
  // Write and link atomically: a concurrent or killed process leaves no partial file.
  writeFileSync(whole, word, { flag: 'wx', mode: 0o600 });
  try {
    linkSync(whole, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(whole);
  }
  return readFileSync(file, 'utf8');
}
