import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { findProcess } from '@nvidia-virtual/service/process-table';

/** Ends the arbiter of a state directory, which would run on for the next gpu-proxy. */
export function killArbiter(state: string, signal: NodeJS.Signals = 'SIGTERM'): void {
  const arbiter = findProcess('--socket', arbiterSocketIn(state));
  if (arbiter) process.kill(arbiter.pid, signal);
}
