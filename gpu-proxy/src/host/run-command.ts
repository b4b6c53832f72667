import { type ChildProcess, execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Command } from './launcher.js';

/** Killed processes that have not ended, by command line. A hanging driver blocks signals. */
const hanging = new Map<string, ChildProcess>();

/**
 * Runs a command that asks the driver, and returns what it prints. Returns after the timeout even
 * if the killed process does not end. The same command is not started again while such a process
 * is left, since it would hang too.
 * @throws Error with the last line of standard error, or the reason why there is no answer
 */
export function runCommand([file, args]: Command, timeoutMs: number): Promise<string> {
  const words = [file, ...args].join('\0');
  return new Promise((resolve, reject) => {
    const former = hanging.get(words);
    if (former)
      throw new Error(
        `process ${former.pid}, which made the previous query, hangs and cannot be ended`,
      );
    const child = execFile(file, args, (error, stdout, stderr) => {
      clearTimeout(timer);
      hanging.delete(words);
      if (error) reject(new Error(stderr.trim().split('\n').at(-1) || error.message));
      else resolve(stdout);
    });
    const timer = setTimeout(() => {
      hanging.set(words, child);
      killWithoutWaiting(child);
      reject(new Error(`the driver does not answer for ${timeoutMs / 1000} s`));
    }, timeoutMs);
  });
}

/** Kills the process without keeping this one alive until it has ended. */
export function killWithoutWaiting(child: ChildProcess): void {
  child.kill('SIGKILL');
  child.unref();
  for (const stream of child.stdio) (stream as Socket | null)?.unref();
}
