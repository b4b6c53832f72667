import type { Policy, SharingMode } from '@nvidia-virtual/ledger';
import { InvalidArgumentError, Option } from 'commander';
import { BACKEND_CHOICES, type BackendChoice } from './backend.js';
import { GPU_NAME } from './configuration/kinds.js';
import { ProxyError } from './errors.js';
import { parseMemorySize } from './memory-size.js';
import { POLICIES, SHARING_MODES } from './specification.js';
import { DEFAULT_STATE } from './state-directory.js';

/** What `run` and `serve` have in common; each option is declared here once. */
export interface GpuOptions {
  readonly backend?: BackendChoice;
  readonly gpu?: readonly string[];
  /** Bytes. */
  readonly memory?: number;
  readonly log?: string;
}

/** What an allocation may be asked to be. */
export interface ShareOptions {
  /** Percent. */
  readonly share?: number;
  readonly policy?: Policy;
  readonly priority?: number;
  readonly mode?: SharingMode;
}

export function backendOptions(): Option[] {
  return [
    new Option('--backend <kind>', 'the real GPU, the simulated one, or the real one if there is one (default: auto)').choices(
      BACKEND_CHOICES,
    ),
    new Option('--log <file>', 'append one JSON line per session and event to this file; - is standard output'),
  ];
}

export function gpuOption(otherwise: string): Option {
  return new Option('--gpu <index|uuid>', `which GPU; repeat it for several (default: ${otherwise})`).argParser(collectGpu);
}

/** For an allocation, whose GPU the node can choose. */
export function chosenGpuOption(): Option {
  const parse = (value: string, previous: readonly string[] = []) => (value === 'choose' ? previous : collectGpu(value, previous));
  return new Option('--gpu <index|uuid|choose>', 'which GPU; repeat it for several (default: choose, the fullest that has it)').argParser(
    parse,
  );
}

export function memoryOption(otherwise: string): Option {
  return new Option('--memory <size>', `GPU memory over all processes together, such as 512MiB (default: ${otherwise})`).argParser(
    (value) => checked(() => parseMemorySize('--memory', value)),
  );
}

export function shareOptions(): Option[] {
  return [
    new Option('--share <percent>', "percent of the GPU's time, 1 to 100 (default: 100)").argParser((value) =>
      wholeNumber('--share', value, 1, 100),
    ),
    new Option('--policy <kind>', 'burst: idle time of the GPU too; fixed: never more than the share (default: burst)').choices(POLICIES),
    new Option('--priority <number>', 'a higher one goes first, -100 to 100 (default: 0)').argParser((value) =>
      wholeNumber('--priority', value, -100, 100),
    ),
    new Option(
      '--mode <kind>',
      'a GPU that is shared in this way: exclusive in turns, concurrent side by side (default: exclusive)',
    ).choices(SHARING_MODES),
  ];
}

export function stateOption(help = 'the state directory of the gpu-proxy to ask'): Option {
  return new Option('--state <directory>', `${help} (default: ${DEFAULT_STATE})`);
}

export function warmWorkersOption(): Option {
  const help = 'how many workers of each GPU wait with a context ready; each holds the memory of one context (default: 0)';
  return new Option('--warm-workers <count>', help).argParser((value) => wholeNumber('--warm-workers', value, 0, 64));
}

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'json: for programs, as in gpu-proxy/proto/admin.proto').choices(['json']);
}

export function countOption(name: string, help: string): Option {
  return new Option(`${name} <count>`, help).argParser((value) => wholeNumber(name, value, 1, Number.MAX_SAFE_INTEGER));
}

function wholeNumber(key: string, value: string, lowest: number, highest: number): number {
  return checked(() => {
    const number = /^[+-]?\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= lowest && number <= highest) return number;
    const allowed = highest === Number.MAX_SAFE_INTEGER ? `a whole number from ${lowest} on` : `a whole number, ${lowest} to ${highest}`;
    throw new ProxyError('VALUE_NOT_ALLOWED', { key, value: JSON.stringify(value), allowed });
  });
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
