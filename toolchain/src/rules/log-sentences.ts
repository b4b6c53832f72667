import { readFileSync } from 'node:fs';
import path from 'node:path';
import { REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const PAGE = 'docs/errors.md';
const CODE = /^interposer\/(?!test\/).+\.cpp$/;
/**
 * A log() call with a literal message. Forwarded messages of the worker or gpu-proxy start with a
 * placeholder and do not match.
 */
const SENTENCE = /\blog\(\s*"((?!%\.\*s")(?:[^"\\]|\\.)*)"/g;
const PLACEHOLDER = /%\w+/g;

export const logSentences: Rule = {
  law: `${PAGE} lists all messages that libcuda.so.1 writes to CUDA_LOG_FILE`,
  check: async () => {
    const page = readFileSync(path.join(REPOSITORY, PAGE), 'utf8');
    return (await trackedFiles())
      .filter((file) => CODE.test(file.path))
      .flatMap((file) => findUntold(file, page));
  },
};

/** @param page has three dots in place of each placeholder */
export function findUntold(file: TrackedFile, page: string): string[] {
  const sentences = [...file.text().matchAll(SENTENCE)].map(([, text = '']) =>
    text.replaceAll(PLACEHOLDER, '…'),
  );
  return sentences
    .filter((sentence) => !page.includes(sentence))
    .map((sentence) => `${file.path} says "${sentence}", and ${PAGE} does not.`);
}
