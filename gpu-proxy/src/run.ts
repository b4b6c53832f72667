import type { Allocation } from './allocation.js';
import { chooseBackend } from './backend.js';
import { runChild } from './child.js';
import { EmbeddedNode } from './embedded-node.js';
import { ProxyError } from './errors.js';
import { type Installation, locateInstallation } from './installation.js';
import { openLog } from './log.js';
import type { GpuOptions } from './options.js';
import { findProgram } from './program.js';
import { checkSocketPath, whyNotServed } from './socket.js';
import { problemsOf, summaryOf } from './summary.js';

export interface RunOptions extends GpuOptions {
  readonly socket?: string;
  readonly verbose?: boolean;
}

type Say = (sentence: string) => void;

/** Runs one program on a virtual GPU. Resolves to the exit status of the program as a shell reports it. */
export async function run(command: readonly string[], options: RunOptions, say: Say): Promise<number> {
  const file = findProgram(command[0] as string);
  const installation = locateInstallation();
  if (options.socket === undefined) return runEmbedded(file, command, installation, options, say);
  refuseOptionsOfServe(options);
  await requireServed(options.socket);
  const status = await runChild(file, command, clientEnvironment(installation, options.socket));
  if (options.verbose) say(`sessions and figures are in the log of the gpu-proxy that serves ${options.socket}`);
  return status;
}

/** With a node of its own, that lives until the last process of the program that uses the GPU has ended. */
async function runEmbedded(file: string, command: readonly string[], installation: Installation, options: RunOptions, say: Say) {
  const backend = chooseBackend(options.backend ?? 'auto', installation);
  const memoryLimit = options.memory ?? 0;
  const request = { gpus: options.gpu, memory: memoryLimit };
  const node = await EmbeddedNode.start({ installation, backend, logger: openLog(options.log), ...request });
  try {
    const status = await runChild(file, command, clientEnvironment(installation, node.allocation.socketPath));
    await endOfSessions(node.allocation);
    return status;
  } finally {
    await node.close();
    const sessions = node.ended;
    const { peakMemory } = node.allocation;
    for (const problem of problemsOf(sessions)) say(problem);
    if (options.verbose)
      for (const line of summaryOf({ program: command[0] as string, backend, memoryLimit, peakMemory, sessions })) say(line);
  }
}

/** The program is gone; processes that it left behind may still use the GPU. A signal now is meant for them. */
async function endOfSessions(allocation: Allocation): Promise<void> {
  const end = () => allocation.kill();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, end);
  await allocation.whenIdle();
  for (const signal of signals) process.off(signal, end);
}

/** Our libcuda.so.1 first in the loader's search, and in Triton's, which does not ask the loader. */
export function clientEnvironment(installation: Installation, socketPath: string, env = process.env): NodeJS.ProcessEnv {
  const directory = installation.interposerDirectory;
  const previous = env['LD_LIBRARY_PATH'];
  return {
    ...env,
    NVIDIA_VIRTUAL_SOCKET: socketPath,
    LD_LIBRARY_PATH: previous ? `${directory}:${previous}` : directory,
    TRITON_LIBCUDA_PATH: directory,
  };
}

function refuseOptionsOfServe(options: RunOptions): void {
  const given = (['backend', 'gpu', 'memory', 'log'] as const).find((name) => options[name] !== undefined);
  if (given) throw new ProxyError('OPTION_OF_SERVE', { option: `--${given}` });
}

async function requireServed(path: string): Promise<void> {
  checkSocketPath(path);
  const reason = await whyNotServed(path);
  if (reason !== undefined) throw new ProxyError('SOCKET_NOT_SERVED', { path, reason });
}
