import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Addon } from '../host/addon.js';

/** A worker answers within its own timeout. More time is for a busy machine. */
const PATIENCE_MS = 10_000;
/** A regular answer is shorter. */
const MOST_BYTES = 1024;

/** The commands of native/worker/session/control.h. */
export type WorkerCommand =
  | `${'suspend' | 'leave' | 'enter'} ${number}`
  | `move ${string}`
  | 'resume'
  | 'park'
  | 'detach'
  | 'unpark'
  | 'drop';

/** The commands of native/keeper. */
export type KeeperCommand = 'hold' | 'drop' | `arena ${string}` | `give ${number}`;

export type WorkerAnswer =
  /**
   * `bytes` of its GPU memory can leave, after `suspend`; are out, after `leave` and `enter`. The
   * worker is not trusted.
   */
  | { readonly kind: 'done'; readonly bytes: number }
  /** It is suspended, but its GPU memory cannot leave; `reason` is printable. */
  | { readonly kind: 'stays'; readonly reason: string }
  /** `leave` needs `bytes` more in the arena. Nothing has moved. */
  | { readonly kind: 'lacks'; readonly bytes: number }
  /** It did not execute the command; `reason` is printable. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Whether it has executed the command is unknown. */
  | { readonly kind: 'silent'; readonly reason: string }
  /** The worker has ended: it has closed its socket, or the pipe. */
  | { readonly kind: 'ended' };

/** Whether it did not execute the command, as far as is known. */
export function isRefusal(
  answer: WorkerAnswer,
): answer is Extract<WorkerAnswer, { kind: 'refused' | 'silent' }> {
  return answer.kind === 'refused' || answer.kind === 'silent';
}

interface Sending {
  /** How long the command may take. */
  readonly timeoutMs?: number;
  /** A file for the worker. The caller keeps it. */
  readonly file?: number | undefined;
}

/**
 * Sends a command to a worker, and waits for the answer. The worker is not trusted: the answer
 * comes through a pipe, because descriptors whose close blocks can come through a socket.
 * @param socket its command socket
 */
export async function sendWorkerCommand(
  addon: Addon,
  socket: string,
  command: WorkerCommand | KeeperCommand,
  { timeoutMs = 0, file }: Sending = {},
): Promise<WorkerAnswer> {
  const [answer, theirs] = addon.pipe();
  try {
    const files = file === undefined ? [theirs] : [theirs, file];
    addon.sendCommand(socket, Buffer.from(command), files);
  } catch (error) {
    closeSync(answer);
    // No process has the socket open: the worker has just ended.
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return { kind: 'ended' };
    return { kind: 'silent', reason: `its worker takes no commands: ${systemReason(error)}` };
  } finally {
    closeSync(theirs);
  }
  return parseAnswer(await readLine(answer, timeoutMs + PATIENCE_MS));
}

function parseAnswer(line: string | undefined): WorkerAnswer {
  if (line === undefined) return { kind: 'silent', reason: 'its worker does not answer' };
  if (line === '') return { kind: 'ended' };
  const [, word, sentence = ''] = /^(error|stays) (.*)$/.exec(line) ?? [];
  const reason = sentence.replace(/[^ -~]/g, '?');
  if (word === 'error') return { kind: 'refused', reason };
  if (word === 'stays') return { kind: 'stays', reason };
  const [, kind, bytes = 0] = /^(done|lacks) (\d{1,15})$/.exec(line) ?? [];
  return { kind: kind === 'lacks' ? 'lacks' : 'done', bytes: Number(bytes) };
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
