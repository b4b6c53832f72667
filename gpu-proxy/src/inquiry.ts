import { type ChildProcess, execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Command } from './launcher.js';

/** Processes that were killed and are not gone, by their command lines: in a driver that hangs no signal reaches them. */
const hanging = new Map<string, ChildProcess>();

/**
 * What a process prints that asks the driver. Patience ends whether or not the process does. As long as one is left that was killed, no other is
 * started with the same words: it would only hang too.
 * @throws Error with its last words, or why there is no answer.
 */
export function inquire([file, args]: Command, patienceMs: number): Promise<string> {
  const words = [file, ...args].join('\0');
  return new Promise((resolve, reject) => {
    const former = hanging.get(words);
    if (former) throw new Error(`process ${former.pid}, which asked the driver before, hangs and cannot be ended`);
    const child = execFile(file, args, (error, stdout, stderr) => {
      clearTimeout(patience);
      hanging.delete(words);
      if (error) reject(new Error(stderr.trim().split('\n').at(-1) || error.message));
      else resolve(stdout);
    });
    const patience = setTimeout(() => {
      hanging.set(words, child);
      abandon(child);
      reject(new Error(`the driver does not answer for ${patienceMs / 1000} s`));
    }, patienceMs);
  });
}

/** Kills it, and does not wait for it: this process can end before it. */
export function abandon(child: ChildProcess): void {
  child.kill('SIGKILL');
  child.unref();
  for (const stream of child.stdio) (stream as Socket | null)?.unref();
}
