import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { ProxyError, systemReason } from './errors.js';
import { isInForeground } from './process-table.js';

const FORWARDED = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'] as const;
/** The terminal sends these to its whole foreground group, the program included; a second copy would be one too many. */
const SENT_BY_TERMINAL: readonly string[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH'];

/**
 * Runs a program (`argv` begins with the name that it was called by) on this process's own streams and passes signals on to it.
 * Resolves to what a shell would report: its exit status, or 128 + the signal that ended it.
 */
export function runChild(file: string, [argv0 = file, ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise((resolve, reject) => {
    // Listening comes first: the program may be known to others, and signalled through us, as soon as it exists.
    let child: ChildProcess | undefined;
    const stopForwarding = forwardSignals((signal) => child?.kill(signal));
    child = spawn(file, args, { argv0, stdio: 'inherit', env });
    child.once('error', (error) => {
      stopForwarding();
      reject(new ProxyError('PROGRAM_NOT_STARTED', { program: file, reason: systemReason(error) }));
    });
    child.once('exit', (status, signal) => {
      stopForwarding();
      resolve(status ?? 128 + constants.signals[signal as NodeJS.Signals]);
    });
  });
}

function forwardSignals(send: (signal: NodeJS.Signals) => void): () => void {
  const forward = (signal: NodeJS.Signals) => {
    if (SENT_BY_TERMINAL.includes(signal) && isInForeground()) return;
    send(signal);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  return () => {
    for (const signal of FORWARDED) process.off(signal, forward);
  };
}
