import type { Rule } from './rule.js';
import { type TrackedFile, trackedFiles } from './tracked-files.js';

/**
 * Allowed hosts of links. Package registries are not allowed, because they are configured per
 * build environment.
 */
const KNOWN = [
  'apache.org',
  'biomejs.dev',
  'github.com',
  'kubernetes.io',
  'nvidia.com',
  'kernel.org',
  'pytorch.org',
  // XML namespace of SVG.
  'w3.org',
];
/**
 * Written by npm. It may contain homepages and sponsors of packages, but no download URLs
 * (omit-lockfile-registry-resolved).
 */
const LOCK_FILE = 'package-lock.json';
/** Local addresses, including Services of a cluster. */
const LOCAL = /^(localhost|127\.|0\.0\.0\.0|\[|\$|\{|[\w.-]+\.svc$)/;

export const knownHosts: Rule = {
  law: 'links lead to known hosts, and the lock file names no registry',
  check: async () => (await trackedFiles()).flatMap(findUnknownHosts),
};

export function findUnknownHosts(file: TrackedFile): string[] {
  if (file.path === LOCK_FILE) return lockFileProblems(file);
  const hosts = [...file.text().matchAll(/\bhttps?:\/\/([^\s/:'"`)>\]]+)/g)].map(
    (match) => match[1] as string,
  );
  const unknown = hosts.filter(
    (host) =>
      !LOCAL.test(host) && !KNOWN.some((known) => host === known || host.endsWith(`.${known}`)),
  );
  return [...new Set(unknown)].map(
    (host) =>
      `${file.path} names ${host}: link to a known host, or add it to ` +
      'toolchain/src/rules/known-hosts.ts.',
  );
}

function lockFileProblems(file: TrackedFile): string[] {
  const addresses = [...file.text().matchAll(/"resolved": "(https?:[^"]+)"/g)];
  return addresses.map(
    (match) =>
      `${file.path} holds the download address ${match[1]}: run \`npm install ` +
      `--omit-lockfile-registry-resolved\`.`,
  );
}
