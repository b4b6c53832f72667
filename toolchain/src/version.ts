import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from './repository.js';

/** Version of all packages, images and the chart. Its only source is package.json. */
export function productVersion(): string {
  return JSON.parse(readFileSync(path.join(REPOSITORY, 'package.json'), 'utf8')).version;
}
