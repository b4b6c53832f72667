import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import { optionsOf } from '@nvidia-virtual/service/configuration/option';
import { flagSource } from '@nvidia-virtual/service/configuration/source';
import type { EndSignal } from '@nvidia-virtual/service/end-signal';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { Log, logUncaught } from '@nvidia-virtual/service/log';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { loadConfiguration } from './configuration/configuration.js';
import { type Configuration, NODE_OPTIONS } from './configuration/schema.js';
import { ConfigurationStore } from './configuration/store.js';
import { chooseBackend } from './gpus/backend.js';
import { locateInstallation } from './host/installation.js';
import { NodeService } from './node-service.js';
import { type Flags, SERVE_OPTIONS } from './options.js';
import { EmbeddedNode } from './run/embedded-node.js';

/** Options of a node that also apply with --socket. */
const WITH_SOCKET = /^(socket|backend|gpu|limits\..*|log|logLevel)$/;

interface SocketService {
  readonly socketPath: string;
  /** 0: all of the GPU. */
  readonly memory: number;
  readonly flags: Flags;
  readonly endSignal: EndSignal;
}

/**
 * Serves until a signal. @throws ProxyError that lists all problems of flags, environment and file
 */
export async function serve(flags: Flags, endSignal: EndSignal): Promise<number> {
  const { memory } = loadFlags(SERVE_OPTIONS, flags);
  const store = new ConfigurationStore(() =>
    loadConfiguration({ flags, environment: process.env }),
  );
  const { socket } = store.current;
  if (socket !== undefined)
    return serveSocket(
      { socketPath: socket, memory: memory ?? 0, flags, endSignal },
      store.current,
    );
  if (memory !== undefined) throw new ProxyError('OPTION_WITHOUT_SOCKET', { option: '--memory' });
  return serveNode(store, endSignal);
}

/**
 * Serves a node. Allocations in the state directory outlive it. Its supervisor must restart it if
 * it exits without a signal.
 */
async function serveNode(store: ConfigurationStore, endSignal: EndSignal): Promise<number> {
  const service = await NodeService.start(store);
  await service.end(await Promise.race([endSignal.first(), service.gpusArrived]));
  return 0;
}

/**
 * Serves one allocation. The first signal stops accepting and waits for the programs; the second
 * kills the sessions.
 */
async function serveSocket(
  { socketPath, memory, flags, endSignal }: SocketService,
  configuration: Configuration,
): Promise<number> {
  refuseOptionsOfNode(flags);
  endSignal.handle('SIGHUP');
  const { gpu: gpus, limits, log = '-', logLevel: level } = configuration;
  const installation = locateInstallation();
  const backend = chooseBackend(configuration.backend, installation);
  const { logger } = new Log({ file: log, level });
  logUncaught(logger);
  const node = await EmbeddedNode.start({
    installation,
    backend,
    logger,
    settings: { limits },
    gpus,
    memory,
    socketPath,
  });
  const { allocation } = node;
  const quota = memory === 0 ? 'the whole GPU' : formatMemorySize(memory);
  logger.info(
    { socket: socketPath, backend: backend.kind, driver: backend.driver, quota },
    'serving',
  );

  const signal = await endSignal.first(() => allocation.kill());
  allocation.stopAccepting();
  logger.info(
    { signal, sessions: allocation.sessionCount },
    'ending: new programs are refused, running ones go on; a second signal ends them',
  );
  await node.close();
  logger.info({ peakMemory: allocation.peakMemory, sessions: node.ended.length }, 'ended');
  return 0;
}

/**
 * Refuses flags that --socket does not support. File and environment are not checked, because they
 * may be meant for another gpu-proxy.
 */
function refuseOptionsOfNode(flags: Flags): void {
  const given = flagSource(flags);
  const wrong = optionsOf(NODE_OPTIONS).find(
    (named) => !WITH_SOCKET.test(named.key) && given(named) !== undefined,
  );
  if (wrong) throw new ProxyError('OPTION_OF_A_NODE', { option: wrong.flag });
}
