import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { mustRun, runCommand } from './command.js';
import { ToolchainError } from './errors.js';

const FAILURE = 'Python packages could not be fetched';

/**
 * Installs packages into a directory in the cache. The directory is renamed when complete.
 */
export async function fetchPythonPackages(
  directory: string,
  packages: readonly string[],
  finish: (tree: string) => void = () => {},
): Promise<void> {
  mkdirSync(path.dirname(directory), { recursive: true });
  const unfinished = mkdtempSync(`${directory}.`);
  try {
    const tree = path.join(unfinished, 'tree');
    await pipInstall(tree, packages);
    finish(tree);
    renameUnlessThere(tree, directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/**
 * Unpacks the source distribution of a package into a directory in the cache. pip unpacks it before
 * it looks for what a build would need, so the failure of that does not matter.
 * @param requirement NAME==VERSION
 */
export async function fetchPythonSource(directory: string, requirement: string): Promise<void> {
  mkdirSync(path.dirname(directory), { recursive: true });
  const unfinished = mkdtempSync(`${directory}.`);
  try {
    const options = ['--quiet', '--no-clean', '--no-deps', '--no-build-isolation'];
    const python = await virtualEnvironment(unfinished);
    const args = ['-m', 'pip', 'download', ...options, '--no-binary=:all:', requirement];
    const { output } = await runCommand(python, args, {
      cwd: unfinished,
      env: { ...process.env, TMPDIR: unfinished },
    });
    renameUnlessThere(unpackedSource(unfinished, requirement, output), directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** pip's directories are pip-download-RANDOM/NAME_DIGEST. */
function unpackedSource(parent: string, requirement: string, output: string): string {
  const name = requirement.split('==')[0];
  const found = readdirSync(parent)
    .filter((entry) => entry.startsWith('pip-download-'))
    .flatMap((entry) => readdirSync(path.join(parent, entry)).map((d) => path.join(entry, d)))
    .find((entry) => path.basename(entry).startsWith(`${name}_`));
  if (found === undefined)
    throw new ToolchainError(`The source of ${requirement} could not be fetched:\n${output}`);
  return path.join(parent, found);
}

/**
 * Uses the pip of a virtual environment, because Debian's Python may have no pip and refuses
 * changes to the system's packages.
 */
async function pipInstall(target: string, packages: readonly string[]): Promise<void> {
  const python = await virtualEnvironment(path.dirname(target));
  const options = [
    '--quiet',
    '--no-deps',
    '--only-binary=:all:',
    '--no-compile',
    '--target',
    target,
  ];
  await mustRun(python, ['-m', 'pip', 'install', ...options, ...packages], { failure: FAILURE });
}

/** @returns the Python of a new virtual environment */
async function virtualEnvironment(parent: string): Promise<string> {
  const environment = path.join(parent, 'venv');
  await mustRun('python3', ['-m', 'venv', environment], { failure: FAILURE });
  return path.join(environment, 'bin', 'python');
}

function renameUnlessThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error; // otherwise another process has installed the same packages
  }
}
