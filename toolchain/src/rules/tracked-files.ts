import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { mustRun } from '../command.js';
import { REPOSITORY } from '../repository.js';

export interface TrackedFile {
  readonly path: string;
  text(): string;
}

/** Files tracked by git, without deleted ones. */
export async function trackedFiles(): Promise<TrackedFile[]> {
  const output = await mustRun('git', ['ls-files']);
  const paths = output.split('\n').filter((line) => line !== '');
  return paths
    .filter(isFile)
    .map((file) => ({ path: file, text: () => readFileSync(path.join(REPOSITORY, file), 'utf8') }));
}

function isFile(file: string): boolean {
  return statSync(path.join(REPOSITORY, file), { throwIfNoEntry: false })?.isFile() ?? false;
}
