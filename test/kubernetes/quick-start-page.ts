import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** The commands of docs/quick-start.md. */
export interface QuickStart {
  /** Variables of the first block, which a user fills in. */
  readonly variables: readonly string[];
  /** The other blocks marked `sh`, as they stand. */
  readonly blocks: readonly string[];
}

export function readQuickStart(): QuickStart {
  const text = readFileSync(path.join(REPOSITORY, 'docs', 'quick-start.md'), 'utf8');
  const [first = '', ...blocks] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(
    (match) => match[1] as string,
  );
  const variables = [...first.matchAll(/^(\w+)=/gm)].map((match) => match[1] as string);
  return { variables, blocks };
}
