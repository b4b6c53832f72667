import { rmSync } from 'node:fs';
import path from 'node:path';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type {
  AllocationMessage,
  CreateAllocationRequest,
  NodeUseMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { plural } from '@nvidia-virtual/service/plural';
import type {
  ClientOptions,
  CreateOptions,
  ListOptions,
  RunOptions,
  TopOptions,
} from '../options.js';
import { policyMessage, sharingModeMessage } from './convert.js';
import { makeKey, readKey, writeKey } from './key-file.js';
import { listView, topView } from './views.js';

/** Output of the commands. */
interface Screen {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

const CLEAR = '\x1b[H\x1b[J';
const INTERVAL_MS = 1000;

type Wanted = Pick<CreateOptions, 'memory' | 'gpu' | 'share' | 'policy' | 'priority' | 'mode'>;

function createRequest({
  memory,
  gpu,
  share,
  policy,
  priority,
  mode,
}: Wanted): CreateAllocationRequest {
  return {
    gpus: gpu ?? [],
    memoryBytes: memory ?? 0,
    sharePercent: share,
    policy: policyMessage(policy),
    priority,
    mode: sharingModeMessage(mode),
  };
}

export function create(options: CreateOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    const { name, latency } = options;
    const allocation = await client.call('createAllocation', {
      ...createRequest(options),
      ...(name !== undefined && { name }),
      ...(latency === 'low' && { lowLatency: true }),
    });
    screen.write(
      options.output === 'json'
        ? jsonLine(allocation)
        : `${allocation.id} ${allocation.socketPath}\n`,
    );
  });
}

export function list(options: ListOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    const { node, gpus } = await client.call('listGpus', {});
    const { allocations } = await client.call('listAllocations', {});
    screen.write(
      options.output === 'json'
        ? jsonLine({ node, gpus, allocations })
        : `${listView({ gpus, allocations }).join('\n')}\n`,
    );
  });
}

/** @param options.count number of updates; undefined: until a signal */
export function top(options: TopOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    let before: NodeUseMessage | undefined;
    let left = options.count ?? Number.POSITIVE_INFINITY;
    for await (const now of client.watchUse(INTERVAL_MS)) {
      screen.write(options.output === 'json' ? jsonLine(now) : block(now, before, screen));
      before = now;
      left--;
      if (left <= 0) break;
    }
  });
}

export function drain(idOrName: string, options: ClientOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    const { id, sessions } = await client.call('drainAllocation', { id: idOrName });
    const rest =
      sessions.length === 0 ? 'it has none left' : `it has ${plural(sessions.length, 'session')}`;
    screen.write(`${id} takes no new sessions; ${rest}, and is deleted with the last one\n`);
  });
}

export function suspend(idOrName: string, options: ClientOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    const took = stopwatch();
    const { id, outBytes } = await client.call('suspendAllocation', { id: idOrName });
    const memory =
      outBytes === 0 ? '' : `${formatMemorySize(outBytes)} left the GPU${took()}, and `;
    screen.write(
      `${id} is suspended: ${memory}the CUDA calls of its programs wait until it is resumed\n`,
    );
  });
}

export function resume(idOrName: string, options: ClientOptions, screen: Screen): Promise<number> {
  return withNode(options, async (client) => {
    const { id, outBytes } = await client.call('getAllocation', { id: idOrName });
    const took = stopwatch();
    const { state } = await client.call('resumeAllocation', { id });
    const came = outBytes === 0 ? '' : `: ${formatMemorySize(outBytes)} came back${took()}`;
    const turn = ': it gets GPU memory in its turn, because the GPU is oversubscribed';
    screen.write(`${id} is resumed${state === 'MEMORY_STATE_OUT' ? turn : came}\n`);
  });
}

export function move(
  idOrName: string,
  options: ClientOptions & { readonly gpu: string },
  screen: Screen,
): Promise<number> {
  return withNode(options, async (client) => {
    const took = stopwatch();
    const { gpu } = options;
    const { id, gpuUuids, suspended } = await client.call('moveAllocation', { id: idOrName, gpu });
    const state = suspended ? ', and is still suspended' : '';
    screen.write(`${id} has moved to GPU ${gpu} (${gpuUuids.join(', ')})${took()}${state}\n`);
  });
}

/**
 * With `encrypt`, the node does not keep the key: it is printed, or written to a file. That comes
 * first: nobody can continue the programs without it, whatever happens to this command.
 */
export function checkpoint(
  idOrName: string,
  options: ClientOptions & {
    readonly directory: string;
    readonly encrypt: boolean;
    readonly keyFile: string | undefined;
  },
  screen: Screen,
): Promise<number> {
  return withNode(options, async (client) => {
    const took = stopwatch();
    const directory = path.resolve(options.directory);
    const { keyFile } = options;
    const key = options.encrypt || keyFile !== undefined ? makeKey() : '';
    if (keyFile !== undefined) writeKey(key, keyFile, directory);
    else if (key !== '') screen.write(`The key, which is kept nowhere: ${key}\n`);
    try {
      const request = { id: idOrName, directory, key };
      const { id } = await client.call('checkpointAllocation', request);
      screen.write(
        `${id} is in ${directory}${took()}: the CUDA calls of its programs wait until it is ` +
          'restored\n',
      );
    } catch (error) {
      if (keyFile !== undefined && isRefusal(error)) rmSync(keyFile, { force: true });
      throw error;
    }
  });
}

/** Whether gpu-proxy has answered that nothing has changed. */
function isRefusal(error: unknown): boolean {
  return error instanceof ProxyError && error.code !== 'NODE_FAILED';
}

export function restore(
  directory: string,
  options: ClientOptions & { readonly keyFile: string | undefined },
  screen: Screen,
): Promise<number> {
  return withNode(options, async (client) => {
    const key = options.keyFile === undefined ? '' : readKey(options.keyFile);
    const took = stopwatch();
    const request = { directory: path.resolve(directory), key };
    const { id, suspended } = await client.call('restoreAllocation', request);
    const state = suspended ? ', and is still suspended' : '';
    screen.write(`${id} is restored${took()}${state}\n`);
  });
}

/** Returns ` in SECONDS s`. */
function stopwatch(): () => string {
  const begun = performance.now();
  return () => ` in ${((performance.now() - begun) / 1000).toFixed(2)} s`;
}

export function remove(
  idOrName: string,
  options: ClientOptions & { readonly force: boolean },
  screen: Screen,
): Promise<number> {
  return withNode(options, async (client) => {
    const { id } = await client.call('getAllocation', { id: idOrName });
    await client.call('deleteAllocation', { id, force: options.force });
    screen.write(`${id} is deleted\n`);
  });
}

/** Creates an allocation that ends with this process. */
export async function hold(client: AdminClient, options: RunOptions): Promise<AllocationMessage> {
  return client.call('createAllocation', { ...createRequest(options), holderPid: process.pid });
}

async function withNode(
  { state }: ClientOptions,
  body: (client: AdminClient) => Promise<void>,
): Promise<number> {
  const client = await AdminClient.connect(state);
  try {
    await body(client);
    return 0;
  } finally {
    client.close();
  }
}

function block(now: NodeUseMessage, before: NodeUseMessage | undefined, screen: Screen): string {
  const text = topView(now, before).join('\n');
  return screen.isTTY ? `${CLEAR}${text}\n` : `${text}\n\n`;
}

function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
