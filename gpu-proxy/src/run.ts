import type { Allocation } from './allocation.js';
import { chooseBackend } from './backend.js';
import { runChild } from './child.js';
import { EmbeddedNode } from './embedded-node.js';
import { type ErrorCode, ProxyError } from './errors.js';
import { type Installation, locateInstallation } from './installation.js';
import { openLog } from './log.js';
import type { GpuOptions, ShareOptions } from './options.js';
import { findProgram } from './program.js';
import { checkSocketPath, whyNotServed } from './socket.js';
import { problemsOf, summaryOf } from './summary.js';

export type Say = (sentence: string) => void;
/** Runs the program with this socket; resolves to its exit status. */
export type Child = (socketPath: string) => Promise<number>;

export const SHARE_OPTIONS = ['share', 'policy', 'priority', 'mode'] as const satisfies readonly (keyof ShareOptions)[];

export interface RunOptions extends GpuOptions, ShareOptions {
  readonly socket?: string;
  readonly state?: string;
  readonly allocation?: string;
  readonly verbose?: boolean;
}

/** Runs one program on a virtual GPU. Resolves to the exit status of the program as a shell reports it. */
export async function run(command: readonly string[], options: RunOptions, say: Say): Promise<number> {
  const file = findProgram(command[0] as string);
  const installation = locateInstallation();
  const child: Child = (socketPath) => runChild(file, command, clientEnvironment(installation, socketPath));
  if (options.socket !== undefined) return runOnSocket(options.socket, child, options, say);
  if (options.state === undefined && options.allocation === undefined)
    return runEmbedded(command[0] as string, child, installation, options, say);
  const { runOnNode } = await import('./run-on-node.js');
  return runOnNode(child, options, say);
}

async function runOnSocket(socket: string, child: Child, options: RunOptions, say: Say): Promise<number> {
  refuse(options, ['backend', 'gpu', 'memory', 'log', ...SHARE_OPTIONS, 'state', 'allocation'], 'OPTION_OF_SERVE');
  await requireServed(socket);
  const status = await child(socket);
  if (options.verbose) say(`sessions and figures are in the log of the gpu-proxy that serves ${socket}`);
  return status;
}

/** @throws ProxyError for the first of these options that was given. */
export function refuse(
  options: RunOptions,
  names: readonly (keyof RunOptions)[],
  code: ErrorCode,
  values: Record<string, string> = {},
): void {
  const given = names.find((name) => options[name] !== undefined);
  if (given) throw new ProxyError(code, { option: `--${given}`, ...values });
}

/** With a node of its own, that lives until the last process of the program that uses the GPU has ended. */
async function runEmbedded(program: string, child: Child, installation: Installation, options: RunOptions, say: Say): Promise<number> {
  const backend = chooseBackend(options.backend ?? 'auto', installation);
  const memoryLimit = options.memory ?? 0;
  const { gpu: gpus, share, policy, priority, mode } = options;
  const request = { gpus, memory: memoryLimit, share, policy, priority, mode };
  const node = await EmbeddedNode.start({ installation, backend, logger: openLog(options.log), ...request });
  try {
    const status = await child(node.allocation.socketPath);
    await endOfSessions(node.allocation);
    return status;
  } finally {
    await node.close();
    const sessions = node.ended;
    const { peakMemory } = node.allocation;
    for (const problem of problemsOf(sessions)) say(problem);
    if (options.verbose) for (const line of summaryOf({ program, backend, memoryLimit, peakMemory, sessions })) say(line);
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

async function requireServed(path: string): Promise<void> {
  checkSocketPath(path);
  const reason = await whyNotServed(path);
  if (reason !== undefined) throw new ProxyError('SOCKET_NOT_SERVED', { path, reason });
}
