import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { DEFAULT_STATE } from '@nvidia-virtual/node-state/paths';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { hold } from '../admin/commands.js';
import type { RunOptions } from '../options.js';
import type { Child, Say } from './run-callbacks.js';

const LOOK_EVERY_MS = 100;

/**
 * Runs a program on the node that serves a state directory: in an existing allocation, or in a new
 * one that ends with the run.
 */
export async function runOnNode(child: Child, options: RunOptions, say: Say): Promise<number> {
  const { state = DEFAULT_STATE, allocation } = options;
  const client = await AdminClient.connect(state);
  try {
    if (allocation !== undefined)
      return await child((await client.call('getAllocation', { id: allocation })).socketPath);
    return await runInOwn(client, await hold(client, options), child, options, say);
  } finally {
    client.close();
  }
}

/**
 * The node deletes the allocation after the exit of this process, for any reason. A regular run
 * deletes it before it returns.
 */
async function runInOwn(
  client: AdminClient,
  { id, socketPath }: AllocationMessage,
  child: Child,
  { verbose }: RunOptions,
  say: Say,
) {
  const status = await child(socketPath);
  try {
    const last = await endOfSessions(client, id);
    await client.call('deleteAllocation', { id, force: false });
    if (verbose) for (const line of summary(last)) say(line);
  } catch (error) {
    say((error as Error).message);
  }
  return status;
}

function summary({ id, memoryBytes, peakMemoryBytes, sharePercent }: AllocationMessage): string[] {
  return [
    `allocation: ${id}`,
    `quota: ${memoryBytes === 0 ? 'the whole GPU' : formatMemorySize(memoryBytes)}`,
    `share: ${sharePercent} %`,
    `peak use: ${formatMemorySize(peakMemoryBytes)}`,
  ];
}

/** Waits for processes that the program left behind. Signals now kill their sessions. */
async function endOfSessions(client: AdminClient, id: string): Promise<AllocationMessage> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const end = () => void client.call('deleteAllocation', { id, force: true }).catch(() => {});
  for (const signal of signals) process.on(signal, end);
  try {
    for (;;) {
      const allocation = await client.call('getAllocation', { id });
      if (allocation.sessions.length === 0) return allocation;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}
