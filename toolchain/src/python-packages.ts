import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './command.js';
import { ToolchainError } from './errors.js';

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
 * Uses the pip of a virtual environment, because Debian's Python may have no pip and refuses
 * changes to the system's packages.
 */
async function pipInstall(target: string, packages: readonly string[]): Promise<void> {
  const environment = path.join(path.dirname(target), 'venv');
  await must('python3', ['-m', 'venv', environment]);
  const options = [
    '--quiet',
    '--no-deps',
    '--only-binary=:all:',
    '--no-compile',
    '--target',
    target,
  ];
  await must(path.join(environment, 'bin', 'python'), [
    '-m',
    'pip',
    'install',
    ...options,
    ...packages,
  ]);
}

async function must(command: string, args: readonly string[]): Promise<void> {
  const { status, output } = await runCommand(command, args);
  if (status !== 0)
    throw new ToolchainError(
      `A compiler could not be fetched: \`${command} ${args.join(' ')}\` failed:\n${output}`,
    );
}

function renameUnlessThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error; // otherwise another process has installed the same packages
  }
}
