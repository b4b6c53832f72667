import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { isInForeground } from '@nvidia-virtual/service/process-table';

const FORWARDED = [
  'SIGTERM',
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
  'SIGCONT',
] as const;
/**
 * The terminal sends these to its foreground process group, which includes the program. Forwarding
 * would duplicate them.
 */
const SENT_BY_TERMINAL: readonly string[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH'];

/**
 * Runs a program with this process's standard streams and forwards signals to it. `argv` includes
 * argv[0]. Resolves to the exit status as a shell reports it: 128 + the signal number after a
 * signal.
 */
export function runChild(
  file: string,
  [argv0 = file, ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  return new Promise((resolve, reject) => {
    // Before spawn(): a signal for the program may arrive as soon as it exists.
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
