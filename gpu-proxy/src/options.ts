import { InvalidArgumentError, Option } from 'commander';
import { BACKEND_CHOICES, type BackendChoice } from './backend.js';
import { GPU_NAME } from './configuration/kinds.js';
import { ProxyError } from './errors.js';
import { parseMemorySize } from './memory-size.js';
import { DEFAULT_SOCKET } from './socket.js';

/** What `run` and `serve` have in common; each option is declared here once. */
export interface GpuOptions {
  readonly backend?: BackendChoice;
  readonly gpu?: readonly string[];
  /** Bytes. */
  readonly memory?: number;
  readonly log?: string;
}

export function gpuOptions(): Option[] {
  return [
    new Option('--backend <kind>', 'the real GPU, the simulated one, or the real one if there is one (default: auto)').choices(
      BACKEND_CHOICES,
    ),
    new Option('--gpu <index|uuid>', 'which GPU; repeat it for several (default: all)').argParser(collectGpu),
    new Option('--memory <size>', 'GPU memory over all processes together, such as 512MiB (default: the whole GPU)').argParser((value) =>
      checked(() => parseMemorySize('--memory', value)),
    ),
    new Option('--log <file>', 'append one JSON line per session and event to this file; - is standard output'),
  ];
}

export function socketOption(command: 'run' | 'serve'): Option {
  return command === 'run'
    ? new Option('--socket <path>', 'use the gpu-proxy that serves this socket, instead of an embedded one')
    : new Option('--socket <path>', 'where to listen').default(DEFAULT_SOCKET);
}

function collectGpu(value: string, previous: readonly string[] = []): string[] {
  return checked(() => {
    if (!GPU_NAME.test(value)) throw new ProxyError('GPU_NAME', { key: '--gpu', value: JSON.stringify(value) });
    return [...previous, value];
  });
}

/** Wrong values are usage errors, which commander reports. */
function checked<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}
