import path from 'node:path';
import { chooseBackend } from './backend.js';
import { EmbeddedNode } from './embedded-node.js';
import { locateInstallation } from './installation.js';
import { openLog } from './log.js';
import { formatMemorySize } from './memory-size.js';
import type { GpuOptions } from './options.js';

export interface ServeOptions extends GpuOptions {
  readonly socket: string;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Serves until a signal comes. The first one lets the sessions end with their programs, the second one ends them. */
export async function serve(options: ServeOptions): Promise<number> {
  const installation = locateInstallation();
  const backend = chooseBackend(options.backend ?? 'auto', installation);
  const logger = openLog(options.log ?? '-');
  const memoryLimit = options.memory ?? 0;
  const socketPath = path.resolve(options.socket);
  const node = await EmbeddedNode.start({ installation, backend, logger, gpus: options.gpu, memory: memoryLimit, socketPath });
  const { allocation } = node;
  const quota = memoryLimit === 0 ? 'the whole GPU' : formatMemorySize(memoryLimit);
  logger.info({ socket: socketPath, backend: backend.kind, driver: backend.driver, quota }, 'serving');

  const signal = await firstSignal(() => allocation.kill());
  allocation.stopAccepting();
  logger.info(
    { signal, sessions: allocation.sessionCount },
    'ending: new programs are refused, running ones go on; a second signal ends them',
  );
  await node.close();
  logger.info({ peakMemory: allocation.peakMemory, sessions: node.ended.length }, 'ended');
  return 0;
}

function firstSignal(again: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (seen) again();
        seen = true;
        resolve(signal);
      });
    }
  });
}
