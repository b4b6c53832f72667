import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Who keeps a node: a random word that lies in the node's state directory, made when there is none.
 * A proxy that starts again there is the same owner and takes over at once; another machine is
 * another owner, even if it has the same name.
 */
export function ownerOf(stateDirectory: string): string {
  const file = path.join(stateDirectory, 'ledger-owner');
  const word = randomBytes(16).toString('hex');
  const whole = `${file}.${word}`;
  // Whoever comes second, or was killed here, leaves no file that is half written.
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
