import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const PAGE = 'docs/errors.md';
const CODE = /^interposer\/(?!test\/).+\.cpp$/;
/**
 * One that only hands on what the worker or gpu-proxy says begins with its placeholder, and stands
 * where those stand.
 */
const SENTENCE = /\blog\(\s*"((?!%\.\*s")(?:[^"\\]|\\.)*)"/g;
const PLACEHOLDER = /%\w+/g;

export const logSentences: Rule = {
  law: `every sentence that our libcuda.so.1 writes into CUDA_LOG_FILE stands in ${PAGE}`,
  check: async () => {
    const page = readFileSync(path.join(REPOSITORY, PAGE), 'utf8');
    return (await trackedFiles())
      .filter((file) => CODE.test(file.path))
      .flatMap((file) => findUntold(file, page));
  },
};

/** @param page has three dots where a sentence is filled in */
export function findUntold(file: TrackedFile, page: string): string[] {
  const sentences = [...file.text().matchAll(SENTENCE)].map(([, text = '']) =>
    text.replaceAll(PLACEHOLDER, '…'),
  );
  return sentences
    .filter((sentence) => !page.includes(sentence))
    .map((sentence) => `${file.path} says "${sentence}", and ${PAGE} does not.`);
}
