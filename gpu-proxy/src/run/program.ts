import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';
import { ProxyError } from '@nvidia-virtual/service/errors';

/**
 * Finds the executable file of `program` as a shell does. @throws ProxyError if it cannot be run
 */
export function findProgram(program: string, searchPath = process.env['PATH'] ?? ''): string {
  if (program.includes('/')) return checkProgram(program, program);
  const candidates = searchPath.split(':').map((directory) => path.join(directory || '.', program));
  const runnable = candidates.find(isRunnable);
  if (runnable) return runnable;
  const existing = candidates.find((candidate) =>
    statSync(candidate, { throwIfNoEntry: false })?.isFile(),
  );
  if (existing) return checkProgram(existing, existing);
  const here = isRunnable(path.join('.', program))
    ? ` (the one in this directory is ./${program})`
    : '';
  throw new ProxyError('PROGRAM_MISSING', { program, where: ` in PATH${here}` });
}

function checkProgram(program: string, file: string): string {
  const found = statOrUndefined(file);
  if (!found) throw new ProxyError('PROGRAM_MISSING', { program, where: '' });
  if (found.isDirectory())
    throw new ProxyError('PROGRAM_NOT_EXECUTABLE', {
      program,
      kind: 'a directory',
      hint: 'Name a program in it.',
    });
  if (isRunnable(file)) return file;
  throw new ProxyError('PROGRAM_NOT_EXECUTABLE', {
    program,
    kind: 'not marked as executable',
    hint: `Run \`chmod +x ${program}\`, or start it by its interpreter.`,
  });
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function statOrUndefined(file: string) {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
