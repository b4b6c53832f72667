import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { PluginError } from './errors.js';

/** Label of files that containers may read, execute, and connect to. */
const TYPE = 'container_file_t';

interface SecurityContext {
  /** File with the security context of this process. */
  readonly file: string;
  /** Program that changes the type of a file. */
  readonly chcon: string;
}

const OF_THIS_PROCESS: SecurityContext = { file: '/proc/self/attr/current', chcon: 'chcon' };

/**
 * Lets containers use the files of a directory on a node with SELinux; elsewhere, does nothing.
 * Files that are created later get the type of their directory, so only the directory is labelled,
 * before anything is in it.
 * @throws PluginError DIRECTORY_NOT_LABELLED
 */
export function labelForContainers(directory: string, context = OF_THIS_PROCESS): void {
  if (!hasSelinux(context.file)) return;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    execFileSync(context.chcon, ['--type', TYPE, directory], { stdio: 'pipe' });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer };
    const reason = stderr?.toString().trim() || message;
    throw new PluginError('DIRECTORY_NOT_LABELLED', { directory, type: TYPE, reason });
  }
}

/** A context of SELinux has a user, a role, a type and a level; AppArmor's has no colons. */
function hasSelinux(file: string): boolean {
  try {
    return readFileSync(file, 'utf8').split(':').length >= 4;
  } catch {
    return false; // without a security module the file cannot be read
  }
}
