import type { GpuRecord } from '@nvidia-virtual/ledger';
import { WarmWorker, type WarmWorkersOptions } from './warm-workers.js';

/** Natively a context takes a third of a second; a driver that hangs must not hang us. */
const PATIENCE_MS = 60_000;

/** Tries what every program's worker does first. Undefined when it works, else why not. */
export function whyNoWorker(gpu: GpuRecord, options: WarmWorkersOptions): Promise<string | undefined> {
  return new Promise((resolve) => {
    const worker = new WarmWorker(gpu, options, (reason) => end(reason));
    const looks = setInterval(() => worker.warm && end(undefined), 50);
    const patience = setTimeout(() => end(`a worker has no context after ${PATIENCE_MS / 1000} s`), PATIENCE_MS);
    let over = false;
    const end = (reason: string | undefined) => {
      if (over) return;
      over = true;
      clearInterval(looks);
      clearTimeout(patience);
      worker.dismiss();
      resolve(reason);
    };
  });
}
