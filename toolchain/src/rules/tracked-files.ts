import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { REPOSITORY } from '../repository.js';

export interface TrackedFile {
  readonly path: string;
  text(): string;
}

/** Files tracked by git, without deleted ones. */
export async function trackedFiles(): Promise<TrackedFile[]> {
  const { status, output } = await runCommand('git', ['ls-files']);
  if (status !== 0) throw new ToolchainError(`git ls-files failed: ${output}`);
  const paths = output.split('\n').filter((line) => line !== '');
  return paths
    .filter(isFile)
    .map((file) => ({ path: file, text: () => readFileSync(path.join(REPOSITORY, file), 'utf8') }));
}

function isFile(file: string): boolean {
  return statSync(path.join(REPOSITORY, file), { throwIfNoEntry: false })?.isFile() ?? false;
}
