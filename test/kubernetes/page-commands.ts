import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** Commands of a page of docs/. */
interface PageCommands {
  /** Variables of the first block, which a user fills in. */
  readonly variables: readonly string[];
  /** The other blocks marked `sh`, as they stand. */
  readonly blocks: readonly string[];
}

export function readCommands(page: string): PageCommands {
  const text = readFileSync(path.join(REPOSITORY, 'docs', page), 'utf8');
  const [first = '', ...blocks] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(
    (match) => match[1] as string,
  );
  const variables = [...first.matchAll(/^(\w+)=/gm)].map((match) => match[1] as string);
  return { variables, blocks };
}
