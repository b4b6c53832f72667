import { chooseBackend } from './backend.js';
import { loadConfiguration, loadFlags } from './configuration/configuration.js';
import { optionsOf } from './configuration/option.js';
import { type Configuration, NODE_OPTIONS } from './configuration/schema.js';
import { flagSource } from './configuration/source.js';
import { ConfigurationStore } from './configuration/store.js';
import { EmbeddedNode } from './embedded-node.js';
import type { EndSignal } from './end-signal.js';
import { ProxyError } from './errors.js';
import { locateInstallation } from './installation.js';
import { Log, logUncaught } from './log.js';
import { formatMemorySize } from './memory-size.js';
import { NodeService } from './node-service.js';
import { type Flags, SERVE_OPTIONS } from './options.js';

/** Of the options of a node, those that one allocation alone follows. */
const WITH_SOCKET = /^(socket|backend|gpu|limits\..*|log|logLevel)$/;

interface SocketService {
  readonly socketPath: string;
  /** 0: all of the GPU. */
  readonly memory: number;
  readonly flags: Flags;
  readonly endSignal: EndSignal;
}

/** Serves until a signal comes. @throws ProxyError that tells all that is wrong with flags, environment and file. */
export async function serve(flags: Flags, endSignal: EndSignal): Promise<number> {
  const { memory } = loadFlags(SERVE_OPTIONS, flags);
  const store = new ConfigurationStore(() => loadConfiguration({ flags, environment: process.env }));
  const { socket } = store.current;
  if (socket !== undefined) return serveSocket({ socketPath: socket, memory: memory ?? 0, flags, endSignal }, store.current);
  if (memory !== undefined) throw new ProxyError('OPTION_WITHOUT_SOCKET', { option: '--memory' });
  return serveNode(store, endSignal);
}

/** A node: what is in the state directory goes on when it ends. Who supervises it starts it again where it ends without a signal. */
async function serveNode(store: ConfigurationStore, endSignal: EndSignal): Promise<number> {
  const service = await NodeService.start(store);
  await service.end(await Promise.race([endSignal.first(), service.gpusArrived]));
  return 0;
}

/** One allocation. The first signal lets the sessions end with their programs, the second one ends them. */
async function serveSocket({ socketPath, memory, flags, endSignal }: SocketService, configuration: Configuration): Promise<number> {
  refuseOptionsOfNode(flags);
  endSignal.hear('SIGHUP');
  const { gpu: gpus, limits, log = '-', logLevel: level } = configuration;
  const installation = locateInstallation();
  const backend = chooseBackend(configuration.backend, installation);
  const { logger } = new Log({ file: log, level });
  logUncaught(logger);
  const node = await EmbeddedNode.start({ installation, backend, logger, settings: { limits }, gpus, memory, socketPath });
  const { allocation } = node;
  const quota = memory === 0 ? 'the whole GPU' : formatMemorySize(memory);
  logger.info({ socket: socketPath, backend: backend.kind, driver: backend.driver, quota }, 'serving');

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

/** What stands in a file or in the environment may be meant for a node beside this one; a flag is meant for this one. */
function refuseOptionsOfNode(flags: Flags): void {
  const given = flagSource(flags);
  const wrong = optionsOf(NODE_OPTIONS).find((named) => !WITH_SOCKET.test(named.key) && given(named) !== undefined);
  if (wrong) throw new ProxyError('OPTION_OF_A_NODE', { option: wrong.flag });
}
