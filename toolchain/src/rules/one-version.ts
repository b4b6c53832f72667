import { productVersion } from '../version.js';
import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

/** Files that repeat the version, and the lines in which they do. */
const COPIES: Readonly<Record<string, readonly RegExp[]>> = {
  'charts/nvidia-virtual/Chart.yaml': [/^version: (.*)$/m, /^appVersion: (.*)$/m],
  'kubectl-plugin/src/version.ts': [/^export const VERSION = '(.*)';$/m],
  'package-lock.json': [/^ {2}"version": "(.*)",$/m],
  // The changes since the last release may be above it.
  'CHANGELOG.md': [/^## (\d[^\s,]*)/m],
};
const PACKAGE = /^[\w-]+\/package\.json$/;

export const oneVersion: Rule = {
  law: 'packages, images, chart and CHANGELOG.md have the version of package.json',
  check: async () => findOtherVersions(await trackedFiles(), productVersion()),
};

export function findOtherVersions(files: readonly TrackedFile[], version: string): string[] {
  const copies = Object.entries(COPIES).flatMap(([path, patterns]) => {
    const text = files.find((file) => file.path === path)?.text() ?? '';
    return patterns
      .map((pattern) => pattern.exec(text)?.[1] ?? 'none')
      .filter((found) => found !== version)
      .map((found) => `${path} has the version ${found}, but package.json ${version}.`);
  });
  const packages = files
    .filter(({ path, text }) => PACKAGE.test(path) && 'version' in JSON.parse(text()))
    .map(({ path }) => `${path} has a version: remove it, that of ./package.json counts.`);
  return [...copies, ...packages];
}
