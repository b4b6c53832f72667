import { existsSync, readFileSync } from 'node:fs';
import { runCommand, runVisibly } from './command.js';
import { ToolchainError } from './errors.js';

export interface Prerequisite {
  /** Name for messages. */
  readonly name: string;
  /** Debian packages that contain it. */
  readonly packages: readonly string[];
  present(): Promise<boolean>;
}

/** Prerequisites for build and demo, beyond Node. */
export const BUILD_PREREQUISITES: readonly Prerequisite[] = [
  {
    name: 'a C++ compiler (g++ 12 or newer)',
    packages: ['g++'],
    present: () => answers('c++', '-std=c++20', '-E', '-x', 'c++', '/dev/null'),
  },
  { name: 'CMake 3.25 or newer', packages: ['cmake'], present: () => atLeast('cmake', [3, 25]) },
  { name: 'Ninja', packages: ['ninja-build'], present: () => answers('ninja', '--version') },
  {
    name: 'Python 3 with venv and pip',
    packages: ['python3', 'python3-venv'],
    present: () => answers('python3', '-c', 'import venv, ensurepip'),
  },
  { name: 'the LZ4 headers', packages: ['liblz4-dev'], present: () => hasHeader('lz4.h') },
  { name: 'the zstd headers', packages: ['libzstd-dev'], present: () => hasHeader('zstd.h') },
  {
    name: 'doctest, for the C++ tests',
    packages: ['doctest-dev'],
    present: () => hasHeader('doctest/doctest.h'),
  },
];

/** Additional prerequisites for `npm test`. */
export const TEST_PREREQUISITES: readonly Prerequisite[] = [
  {
    // Debian's package redis-server would start a daemon. The server's program is in redis-tools
    // too, under the name redis-check-rdb: it is one file that looks at its name, and
    // ledger/src/testing/redis-server.ts calls it by the other.
    name: 'redis-server',
    packages: ['redis-tools'],
    present: () => answers('sh', '-c', 'command -v redis-server || command -v redis-check-rdb'),
  },
  {
    name: 'the openssl command',
    packages: ['openssl'],
    present: () => answers('openssl', 'version'),
  },
];

/** Additional prerequisites for `npm run images`. */
export const IMAGE_PREREQUISITES: readonly Prerequisite[] = [
  { name: 'buildah', packages: ['buildah'], present: () => answers('buildah', '--version') },
];

/** Additional prerequisites for signatures of a release. */
export const SIGNING_PREREQUISITES: readonly Prerequisite[] = [
  { name: 'GnuPG', packages: ['gnupg'], present: () => answers('gpg', '--version') },
];

/**
 * Additional prerequisites for `npm run test:kubernetes`. With systemd, installing containerd
 * starts it; it does not interfere with the tests' containerd.
 */
export const KUBERNETES_PREREQUISITES: readonly Prerequisite[] = [
  {
    name: 'containerd',
    packages: ['containerd'],
    present: () => answers('containerd', '--version'),
  },
  { name: 'runc', packages: ['runc'], present: () => answers('runc', '--version') },
  {
    name: 'libseccomp, for a runc of today',
    packages: ['libseccomp-dev', 'pkg-config'],
    present: () => answers('pkg-config', '--exists', 'libseccomp'),
  },
  {
    name: 'the network plugins of CNI',
    packages: ['containernetworking-plugins'],
    present: async () => existsSync('/usr/lib/cni/bridge'),
  },
  ...IMAGE_PREREQUISITES,
  {
    name: 'mmdebstrap',
    packages: ['mmdebstrap'],
    present: () => answers('mmdebstrap', '--version'),
  },
  {
    name: 'Chromium, for the dashboard',
    packages: ['chromium'],
    present: () => answers('chromium', '--version'),
  },
  {
    name: 'Poppler, for pictures of the dashboard',
    packages: ['poppler-utils'],
    present: () => answers('pdftocairo', '-v'),
  },
  { name: 'iptables', packages: ['iptables'], present: () => answers('iptables', '--version') },
  { name: 'conntrack', packages: ['conntrack'], present: () => answers('conntrack', '--version') },
  { name: 'the ip command', packages: ['iproute2'], present: () => answers('ip', '-V') },
];

/** Access to the host. Tests use a fake. */
export interface Host {
  readonly isRoot: boolean;
  readonly isDebian: boolean;
  install(packages: readonly string[]): Promise<boolean>;
}

const THIS_HOST: Host = {
  isRoot: process.getuid?.() === 0,
  isDebian:
    existsSync('/usr/bin/apt-get') &&
    /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readIfThere('/etc/os-release')),
  install: installDebianPackages,
};

/**
 * Installs missing prerequisites as root on Debian. Otherwise throws an error with the command to
 * run.
 */
export async function ensurePrerequisites(
  wanted = BUILD_PREREQUISITES,
  host = THIS_HOST,
): Promise<void> {
  const missing = await findMissing(wanted);
  if (missing.length === 0) return;
  const packages = missing.flatMap((one) => one.packages);
  const names = missing.map((one) => one.name).join(', ');
  if (!host.isDebian)
    throw new ToolchainError(
      `Missing: ${names}. Install them with this system's package manager, and try again.`,
    );
  if (!host.isRoot)
    throw new ToolchainError(
      `Missing: ${names}. Install them with\n\n  sudo apt-get install -y ` +
        `${packages.join(' ')}\n\nand ` +
        `try again.`,
    );
  process.stdout.write(`Missing: ${names}. Installing ${packages.join(' ')}.\n`);
  const installed = await host.install(packages);
  const still = installed ? await findMissing(wanted) : missing;
  if (still.length > 0)
    throw new ToolchainError(
      `Still missing after apt-get install: ${still.map((one) => one.name).join(', ')}.`,
    );
}

async function findMissing(wanted: readonly Prerequisite[]): Promise<Prerequisite[]> {
  const present = await Promise.all(wanted.map((one) => one.present()));
  return wanted.filter((_, index) => !present[index]);
}

async function installDebianPackages(packages: readonly string[]): Promise<boolean> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = () =>
    runVisibly('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...packages], { env });
  // Update first: package lists are missing on a fresh image and stale on an old one.
  return (await runVisibly('apt-get', ['update', '-q'], { env })) === 0 && (await install()) === 0;
}

async function answers(command: string, ...args: string[]): Promise<boolean> {
  return (await runCommand(command, args)).status === 0;
}

async function atLeast(
  command: string,
  [major, minor]: readonly [number, number],
): Promise<boolean> {
  const version = /(\d+)\.(\d+)/.exec((await runCommand(command, ['--version'])).output);
  if (!version) return false;
  const [foundMajor, foundMinor] = [Number(version[1]), Number(version[2])];
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
}

function hasHeader(name: string): Promise<boolean> {
  return answers('c++', '-E', '-x', 'c++', '-include', name, '/dev/null');
}

function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
