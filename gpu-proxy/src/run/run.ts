import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import { type ErrorCode, ProxyError } from '@nvidia-virtual/service/errors';
import { Log } from '@nvidia-virtual/service/log';
import { checkSocketPath, whyNotServed } from '@nvidia-virtual/service/socket';
import type { Allocation } from '../allocations/allocation.js';
import { chooseBackend } from '../gpus/backend.js';
import { type Installation, locateInstallation } from '../host/installation.js';
import { type Flags, RUN_OPTIONS, type RunOptions } from '../options.js';
import { runChild } from './child.js';
import { EmbeddedNode } from './embedded-node.js';
import { findProgram } from './program.js';
import type { Child, Say } from './run-callbacks.js';
import { problemsOf, summaryOf } from './summary.js';
import { TraceFile } from './trace-file.js';

/** Options that describe an allocation. */
const OF_ALLOCATION = [
  'gpu',
  'memory',
  'share',
  'policy',
  'priority',
  'mode',
] as const satisfies readonly (keyof RunOptions)[];

/**
 * Runs one program on a virtual GPU. Resolves to its exit status as a shell reports it.
 */
export async function run(command: readonly string[], flags: Flags, say: Say): Promise<number> {
  const options = {
    ...loadFlags(RUN_OPTIONS, flags),
    verbose: flags['verbose'] === true,
    summary: flags['summary'] === true,
  };
  refuseWhatOthersDecide(flags);
  const file = findProgram(command[0] as string);
  const installation = locateInstallation();
  const trace = options.trace === undefined ? undefined : new TraceFile(options.trace);
  const child: Child = (socketPath) =>
    runChild(file, command, {
      ...clientEnvironment(installation, socketPath),
      ...traceEnvironment(options),
    });
  try {
    return await runWith(command[0] as string, child, installation, options, say);
  } finally {
    trace?.close();
  }
}

function traceEnvironment({ trace, summary }: RunOptions): NodeJS.ProcessEnv {
  return {
    ...(trace === undefined ? {} : { NVIDIA_VIRTUAL_TRACE: trace }),
    ...(summary ? { NVIDIA_VIRTUAL_SUMMARY: '1' } : {}),
  };
}

async function runWith(
  program: string,
  child: Child,
  installation: Installation,
  options: RunOptions,
  say: Say,
): Promise<number> {
  if (options.socket !== undefined) return runOnSocket(options.socket, child, options, say);
  if (options.state === undefined && options.allocation === undefined)
    return runEmbedded(program, child, installation, options, say);
  const { runOnNode } = await import('./run-on-node.js');
  return runOnNode(child, options, say);
}

async function runOnSocket(
  socket: string,
  child: Child,
  options: RunOptions,
  say: Say,
): Promise<number> {
  await requireServed(socket);
  const status = await child(socket);
  if (options.verbose)
    say(`sessions and figures are in the log of the gpu-proxy that serves ${socket}`);
  return status;
}

/** Refuses options that the server of the socket or the node has already decided. */
function refuseWhatOthersDecide(flags: Flags): void {
  const refuse = (
    names: readonly (keyof RunOptions)[],
    code: ErrorCode,
    values: Record<string, string> = {},
  ) => {
    const given = names.find((name) => flags[name] !== undefined);
    if (given) throw new ProxyError(code, { option: `--${given}`, ...values });
  };
  const { socket, state, allocation } = flags;
  if (socket !== undefined)
    refuse(
      ['backend', 'managedMemory', 'log', ...OF_ALLOCATION, 'state', 'allocation'],
      'OPTION_OF_SERVE',
    );
  if (state !== undefined || allocation !== undefined)
    refuse(['backend', 'managedMemory', 'log'], 'OPTION_OF_NODE', {
      other: state === undefined ? '--allocation' : '--state',
    });
  if (allocation !== undefined) refuse(OF_ALLOCATION, 'OPTION_OF_ALLOCATION');
}

/**
 * Runs the program with a private node, which lives until the last process that uses the GPU exits.
 */
async function runEmbedded(
  program: string,
  child: Child,
  installation: Installation,
  options: RunOptions,
  say: Say,
): Promise<number> {
  const backend = chooseBackend(options.backend, installation);
  const memoryLimit = options.memory ?? 0;
  const { gpu: gpus, share, policy, priority, mode } = options;
  const request = { gpus, memory: memoryLimit, share, policy, priority, mode };
  const node = await EmbeddedNode.start({
    installation,
    backend,
    logger: new Log({ file: options.log }).logger,
    settings: { movesManaged: options.managedMemory === 'moves' },
    ...request,
  });
  try {
    const status = await child(node.allocation.socketPath);
    await endOfSessions(node.allocation);
    return status;
  } finally {
    await node.close();
    const sessions = node.ended;
    const { peakMemory } = node.allocation;
    for (const problem of problemsOf(sessions)) say(problem);
    if (options.verbose)
      for (const line of summaryOf({ program, backend, memoryLimit, peakMemory, sessions }))
        say(line);
  }
}

/**
 * Waits for processes that the program left behind. Signals now kill their sessions.
 */
async function endOfSessions(allocation: Allocation): Promise<void> {
  const end = () => allocation.kill();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, end);
  await allocation.whenIdle();
  for (const signal of signals) process.off(signal, end);
}

/**
 * Puts the interposer first in the search path of the loader and of Triton, which has its own.
 */
export function clientEnvironment(
  installation: Installation,
  socketPath: string,
  env = process.env,
): NodeJS.ProcessEnv {
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
