import { spawn } from 'node:child_process';
import { constants } from 'node:os';

export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  /** As in Python: the negative number of the signal that ended it. */
  readonly status: number;
  readonly timedOut: boolean;
}

interface ChildOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly seconds: number;
}

/** Runs a program with pipes, in its own process group, which is killed after the timeout. */
export function runChild(
  command: string,
  args: readonly string[],
  { cwd, env, seconds }: ChildOptions,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
    }, seconds * 1000);
    child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const text = (which: 'stdout' | 'stderr') => Buffer.concat(chunks[which]).toString('utf8');
      resolve({
        stdout: text('stdout'),
        stderr: text('stderr'),
        status: code ?? -constants.signals[signal ?? 'SIGKILL'],
        timedOut,
      });
    });
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it ended at the same moment
  }
}
