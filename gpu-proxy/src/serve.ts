import path from 'node:path';
import { type Backend, chooseBackend } from './backend.js';
import { EmbeddedNode } from './embedded-node.js';
import { ProxyError } from './errors.js';
import { type Installation, locateInstallation } from './installation.js';
import { takeInventory } from './inventory.js';
import { openLog } from './log.js';
import { formatMemorySize } from './memory-size.js';
import { GpuNode } from './node.js';
import type { GpuOptions } from './options.js';
import { DEFAULT_STATE, StateDirectory } from './state-directory.js';

export interface ServeOptions extends GpuOptions {
  readonly state?: string;
  readonly socket?: string;
  /** On each GPU. */
  readonly warmWorkers?: number;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Serves until a signal comes. */
export async function serve(options: ServeOptions): Promise<number> {
  const installation = locateInstallation();
  const backend = chooseBackend(options.backend ?? 'auto', installation);
  if (options.socket === undefined) return serveNode(installation, backend, options);
  if (options.state !== undefined) throw new ProxyError('OPTION_OF_SERVE', { option: '--state' });
  return serveSocket(options.socket, installation, backend, options);
}

/** A node: what is in the state directory goes on when it ends. */
async function serveNode(installation: Installation, backend: Backend, options: ServeOptions): Promise<number> {
  if (options.memory !== undefined) throw new ProxyError('OPTION_WITHOUT_SOCKET', { option: '--memory' });
  const logger = openLog(options.log ?? '-');
  const state = StateDirectory.open(options.state ?? DEFAULT_STATE);
  const { AdminServer } = await import('./admin/server.js');
  try {
    const gpus = await takeInventory({ installation, backend, gpus: options.gpu ?? [] });
    const warmWorkers = () => options.warmWorkers ?? 0;
    const node = await GpuNode.start({ installation, backend, logger, state, gpus, arbitrated: true, settings: { warmWorkers } });
    try {
      const admin = await AdminServer.start(node, state.adminSocket);
      logger.info({ state: state.directory, backend: backend.kind, driver: backend.driver, gpus }, 'serving');
      const signal = await firstSignal(() => {});
      admin.close();
      const sessions = node.allocations.reduce((sum, allocation) => sum + allocation.sessionCount, 0);
      logger.info({ signal, sessions }, 'ended: programs go on, and the next gpu-proxy on this state directory finds them');
      return 0;
    } finally {
      node.leave();
    }
  } finally {
    state.release();
  }
}

/** One allocation. The first signal lets the sessions end with their programs, the second one ends them. */
async function serveSocket(socket: string, installation: Installation, backend: Backend, options: ServeOptions): Promise<number> {
  const logger = openLog(options.log ?? '-');
  const memoryLimit = options.memory ?? 0;
  const socketPath = path.resolve(socket);
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
