import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';
import { trackedFiles } from './tracked-files.js';

const PAGE = 'docs/environment.md';
const CODE = /(?<!\.test)\.(ts|cpp|h|py)$/;
/** A quoted variable name. CMake options (-DNVIDIA_VIRTUAL_...) do not match. */
const NAME = /['"](NVIDIA_VIRTUAL_\w+)['"]/g;
/** The file that lists the variables that the worker passes from the program to the driver. */
const FOR_THE_DRIVER = 'native/worker/driver/environment.cpp';
const NAME_OF_CUDA = /"(CUDA_\w+)"/g;

export const environmentPage: Rule = {
  law: `${PAGE} lists our environment variables, and CUDA's that the worker passes to the driver`,
  check: async () => {
    const page = readFileSync(path.join(REPOSITORY, PAGE), 'utf8');
    const files = (await trackedFiles()).filter((file) => CODE.test(file.path));
    return files.flatMap((file) => findUndocumented(file.path, file.text(), page));
  },
};

export function findUndocumented(file: string, code: string, page: string): string[] {
  const found = [
    ...code.matchAll(NAME),
    ...(file === FOR_THE_DRIVER ? code.matchAll(NAME_OF_CUDA) : []),
  ];
  const names = new Set(found.map((match) => match[1] as string));
  return [...names]
    .filter((name) => !page.includes(`\`${name}\``))
    .map((name) => `${file} reads ${name}, but ${PAGE} does not document it.`);
}
