import { rmSync } from 'node:fs';

/** Removes a directory of makePrivateDirectory(). */
export function removePrivateDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}
