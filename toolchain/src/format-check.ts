import { runCommand, runVisibly } from './command.js';
import { runMain, ToolchainError } from './errors.js';
import { trackedFiles } from './rules/tracked-files.js';

/** Checks the format of all tracked C++ and CUDA files. `--fix` formats them. */
await runMain(async () => {
  if ((await runCommand('clang-format', ['--version'])).status !== 0)
    throw new ToolchainError('clang-format is missing: install the Debian package clang-format.');
  const files = (await trackedFiles())
    .map((file) => file.path)
    .filter((file) => /\.(cpp|h|cu|c)$/.test(file));
  const mode = process.argv.includes('--fix') ? ['-i'] : ['--dry-run', '-Werror'];
  return runVisibly('clang-format', [...mode, ...files]);
});
