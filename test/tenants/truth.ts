import path from 'node:path';
import { QuotaFile } from '@nvidia-virtual/gpu-proxy/allocations/quota';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { MAX_SESSIONS } from '@nvidia-virtual/node-state/allocation-options';
import { sessionDirectories } from '@nvidia-virtual/node-state/paths';
import { readSession } from '@nvidia-virtual/node-state/specification';
import { isAlive } from '@nvidia-virtual/service/process-table';
import { lookUntil } from '../processes.js';
import type { TestNode } from './node.js';

/** Names of files and directories that are being created or removed. */
const PASSING = /^\.(new|gone)-/;

/**
 * Compares the state of an allocation in the node and in the ledger with the facts: records of its
 * sessions, their processes, and the bytes in its quota file. Waits for them to agree. @returns the
 * differences
 */
export async function disagreements(
  node: TestNode,
  allocation: AllocationMessage,
  clients: readonly number[],
): Promise<string[]> {
  const look = async () => {
    const written = await node.writtenSessions(allocation);
    return compare(node.directoryOf(allocation), await node.look(allocation), clients, written);
  };
  return lookUntil(look, (problems) => problems.length === 0, { everyMs: 20 });
}

function compare(
  directory: string,
  said: AllocationMessage,
  clients: readonly number[],
  written: readonly SessionRecord[],
): string[] {
  const directories = sessionDirectories(directory);
  const isPassing = (session: string) => PASSING.test(path.basename(session));
  const records = directories.filter((session) => !isPassing(session)).map(readSession);
  const known = records.filter((record) => record !== undefined);
  return [
    ...directories
      .filter(isPassing)
      .map((session) => `${session} is left half made or half removed`),
    ...(known.length < records.length ? ['a session has no record'] : []),
    ...known
      .filter(({ worker }) => !isAlive(worker))
      .map(({ number }) => `session ${number} has no worker`),
    ...difference(
      'clients',
      clients,
      known.map(({ client }) => client.pid),
    ),
    ...difference(
      'sessions in its records, and as the node says',
      known.map(({ number }) => number),
      said.sessions.map(({ number }) => number),
    ),
    ...difference(
      'workers in its records, and in the ledger',
      known.map(({ worker }) => worker.pid),
      written.map(({ worker }) => worker.pid),
    ),
    ...quotaProblems(path.join(directory, 'quota'), known),
  ];
}

/** Active sessions allocate and free all the time. Slots without a session must be zero. */
function quotaProblems(file: string, records: readonly SessionRecord[]): string[] {
  const quota = QuotaFile.open(file);
  const taken = new Set(records.map(({ slot }) => slot));
  const free = Array.from({ length: MAX_SESSIONS }, (_, slot) => slot).filter(
    (slot) => !taken.has(slot),
  );
  const holding = free.filter(
    (slot) => quota.readSlot(slot).used + quota.readSlot(slot).pinned > 0,
  );
  quota.close();
  return [
    ...holding.map(
      (slot) => `slot ${slot} of the quota file holds bytes and belongs to no session`,
    ),
    ...(taken.size < records.length ? ['two sessions have one slot of the quota file'] : []),
  ];
}

function difference(what: string, one: readonly number[], other: readonly number[]): string[] {
  const [a, b] = [one, other].map((numbers) => [...numbers].sort((x, y) => x - y).join(', '));
  return a === b ? [] : [`${what}: ${a || 'none'} and ${b || 'none'}`];
}
