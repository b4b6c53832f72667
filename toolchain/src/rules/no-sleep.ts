import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

const SLEEPS = [
  { files: /_test\.cpp$/, call: /\b(usleep|sleep_for|sleep_until|nanosleep)\(/ },
  { files: /\.test\.ts$/, call: /\b(setTimeout\([^)]|pause\(\d)/ },
];

/** Tests wait for conditions: `test/unit/waiting.h`, `eventually()`. */
export const noSleep: Rule = {
  law: 'no test sleeps for a time',
  check: async () => (await trackedFiles()).flatMap(findSleeps),
};

export function findSleeps(file: TrackedFile): string[] {
  const sleeps = SLEEPS.filter(({ files }) => files.test(file.path));
  if (sleeps.length === 0) return [];
  return file
    .text()
    .split('\n')
    .flatMap((line, index) =>
      sleeps.some(({ call }) => call.test(line))
        ? [`${file.path}:${index + 1} sleeps: wait for a condition.`]
        : [],
    );
}
