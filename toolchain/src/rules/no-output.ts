import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const BUILD_OUTPUT = /(^|\/)(node_modules|build|dist)\//;
/** Banner at the start of generated files. */
const BANNER = /^.{0,8}Generated\. Do not edit/;
/** Expected output of the generator for a test specification. */
const GOLDEN = 'cuda-api/golden/expected/';
const MOST_BYTES = 512 * 1024;

/** Only sources are committed: no build outputs, and nothing too large to review. */
export const noOutput: Rule = {
  law: 'git holds no generated, binary or very large file',
  check: async () => (await trackedFiles()).flatMap(findOutput),
};

export function findOutput(file: TrackedFile): string[] {
  if (BUILD_OUTPUT.test(file.path))
    return [`${file.path} is in a directory for build outputs: remove it from git.`];
  const text = file.text();
  if (text.includes('\0'))
    return [`${file.path} is a binary file: create it in the build or with a script.`];
  if (text.length > MOST_BYTES)
    return [
      `${file.path} has ${text.length} characters, more than ${MOST_BYTES}: too large to review.`,
    ];
  if (BANNER.test(text) && !file.path.startsWith(GOLDEN))
    return [`${file.path} is generated: it belongs under build/.`];
  return [];
}
