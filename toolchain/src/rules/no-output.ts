import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const BUILD_OUTPUT = /(^|\/)(node_modules|build|dist)\//;
/** The banner of generated files; it opens them, so a text that talks about it is not meant. */
const BANNER = /^.{0,8}Generated\. Do not edit/;
/** What the generator is expected to write for a tiny specification. */
const GOLDEN = 'cuda-api/golden/expected/';
const MOST_BYTES = 512 * 1024;

/** Sources only: what a build makes, and what no person can review, stays out. */
export const noOutput: Rule = {
  law: 'git holds no generated, binary or very large file',
  check: async () => (await trackedFiles()).flatMap(findOutput),
};

export function findOutput(file: TrackedFile): string[] {
  if (BUILD_OUTPUT.test(file.path))
    return [`${file.path} lies in a directory of build outputs: remove it from git.`];
  const text = file.text();
  if (text.includes('\0'))
    return [`${file.path} is a binary file: make it in the build, or by a script.`];
  if (text.length > MOST_BYTES)
    return [
      `${file.path} has ${text.length} characters, more than ${MOST_BYTES}: too large to review.`,
    ];
  if (BANNER.test(text) && !file.path.startsWith(GOLDEN))
    return [`${file.path} is generated: it belongs under build/.`];
  return [];
}
