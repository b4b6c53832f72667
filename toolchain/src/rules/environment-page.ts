import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';
import { trackedFiles } from './tracked-files.js';

const PAGE = 'docs/environment.md';
const CODE = /(?<!\.test)\.(ts|cpp|h|py)$/;
/** As code spells the name of a variable; a CMake switch (-DNVIDIA_VIRTUAL_...) is none. */
const NAME = /['"](NVIDIA_VIRTUAL_\w+)['"]/g;

export const environmentPage: Rule = {
  law: `every environment variable of ours stands in ${PAGE}`,
  check: async () => {
    const page = readFileSync(path.join(REPOSITORY, PAGE), 'utf8');
    const files = (await trackedFiles()).filter((file) => CODE.test(file.path));
    return files.flatMap((file) => findUndocumented(file.path, file.text(), page));
  },
};

export function findUndocumented(file: string, code: string, page: string): string[] {
  const names = new Set([...code.matchAll(NAME)].map((match) => match[1] as string));
  return [...names].filter((name) => !page.includes(`\`${name}\``)).map((name) => `${file} reads ${name}, which ${PAGE} does not explain.`);
}
