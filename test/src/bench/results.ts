import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';
import type { LocalResults } from './figures.js';
import type { FrameworkResults, GpuResults, Results, SharingResults } from './page.js';

const DIRECTORY = path.join(REPOSITORY, 'test', 'bench', 'results');

/** The measurements that are committed, as far as there are any. */
export function committedResults(): Results {
  const local = read<LocalResults>('local.json');
  const gpu = read<GpuResults>('bench.json');
  const frameworks = read<FrameworkResults>('frameworks.json');
  const sharing = read<SharingResults>('sharing.json');
  const scheduling = read<LocalResults>('scheduling.json');
  const parts = { ...(local && { local }), ...(gpu && { gpu }), ...(frameworks && { frameworks }), ...(sharing && { sharing }) };
  return { ...parts, ...(scheduling && { scheduling }) };
}

function read<T>(name: string): T | undefined {
  const file = path.join(DIRECTORY, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
}
