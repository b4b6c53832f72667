import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** A program that frameworks.py runs. */
export interface FrameworkProgram {
  readonly name: string;
  readonly subject: string;
}

/** The programs in test/bench/frameworks. */
export function frameworkPrograms(): FrameworkProgram[] {
  const directory = path.join(REPOSITORY, 'test', 'bench', 'frameworks');
  return readdirSync(directory)
    .map((file) => path.parse(file))
    .filter(({ ext }) => ext === '.py')
    .map(({ name }) => ({ name, subject: subjectOf(path.join(directory, `${name}.py`)) }));
}

function subjectOf(file: string): string {
  return /^"""(.*?)"""/s.exec(readFileSync(file, 'utf8'))?.[1]?.replaceAll(/\s+/g, ' ') ?? '';
}
