import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Addon } from '../host/addon.js';

/** A worker answers within its own timeout. More time is for a busy machine. */
const PATIENCE_MS = 10_000;
/** A regular answer is shorter. */
const MOST_BYTES = 1024;

/** The commands of native/worker/session/control.h. */
export type WorkerCommand = `suspend ${number}` | 'resume';

/**
 * Sends a command to a worker, and waits for the answer. The worker is not trusted: the answer
 * comes through a pipe, because descriptors whose close blocks can come through a socket.
 * @param socket its command socket
 * @param timeoutMs how long the command may take
 * @returns undefined: it is done, or the worker has ended; else why not
 */
export async function sendWorkerCommand(
  addon: Addon,
  socket: string,
  command: WorkerCommand,
  timeoutMs = 0,
): Promise<string | undefined> {
  const [answer, theirs] = addon.pipe();
  try {
    addon.sendCommand(socket, Buffer.from(command), [theirs]);
  } catch (error) {
    closeSync(answer);
    return `its worker takes no commands: ${systemReason(error)}`;
  } finally {
    closeSync(theirs);
  }
  const line = await readLine(answer, timeoutMs + PATIENCE_MS);
  if (line === undefined) return 'its worker does not answer';
  return line.startsWith('error ')
    ? line.slice('error '.length).replace(/[^ -~]/g, '?')
    : undefined;
}

/** Sends a command without waiting. A worker that has not begun executes it first. */
export function tellWorker(addon: Addon, socket: string, command: WorkerCommand): void {
  try {
    addon.sendCommand(socket, Buffer.from(command), []);
  } catch {
    // The worker has ended, or is of an older build, which takes no commands.
  }
}

/** Empty if the pipe ends before; undefined after the timeout. Closes the pipe. */
function readLine(fd: number, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const pipe = new Socket({ fd, readable: true, writable: false });
    let text = '';
    const finish = (line: string | undefined) => {
      clearTimeout(timer);
      pipe.destroy();
      resolve(line);
    };
    const timer = setTimeout(() => finish(undefined), timeoutMs);
    pipe.on('data', (data) => {
      text += data.toString();
      if (text.includes('\n') || text.length > MOST_BYTES)
        finish(text.slice(0, MOST_BYTES).split('\n', 1)[0]);
    });
    pipe.once('end', () => finish(''));
    pipe.once('error', () => finish(''));
  });
}
