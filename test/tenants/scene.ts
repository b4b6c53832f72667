import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RedisServer } from '@nvidia-virtual/ledger/testing/redis-server';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { lookUntil, newSharedMemory, sharedMemory } from '../processes.js';
import type { Tally } from '../tally.js';
import { TestNode } from './node.js';
import { type Load, Tenant } from './tenant.js';

/** Content of an idle state directory. */
const FILES = [
  'admin.sock',
  'allocations',
  'arenas.json',
  'arbiter',
  'arbiter/arbiter.sock',
  'arbiter/arbiter.sock.lock',
  'arbiter/arbiter.sock.log',
  'boot',
  'ledger-owner',
  'lock',
  'simulated-gpus',
];

/** The compiled programs of test/tenants/. */
interface Programs {
  readonly neighbour: string;
  readonly quota: string;
  readonly heap: string;
  readonly sharing: string;
  readonly malice: string;
}

/** Objects that a case uses. */
export interface Scene {
  readonly node: TestNode;
  readonly programs: Programs;
  readonly tally: Tally;
  /** For files of the case. */
  readonly directory: string;
  readonly random: () => number;
  /** Number of kills. */
  readonly kills: number;
  readonly suspensions: number;
}

export interface Case {
  readonly name: string;
  readonly about: string;
  /** Arguments of its `gpu-proxy serve`. */
  readonly options?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv | ((directory: string) => NodeJS.ProcessEnv);
  play(scene: Scene): Promise<void>;
}

export function startTenant(
  { programs, directory }: Scene,
  allocation: AllocationMessage,
  load: Load,
  length?: number,
): Tenant {
  return new Tenant(programs.neighbour, directory, allocation, load, length);
}

/** Runs each case with its own node, and checks what it leaves behind. */
export async function play(one: Case, given: Omit<Scene, 'node' | 'directory'>): Promise<void> {
  const directory = mkdtempSync(path.join(tmpdir(), 'tenants-'));
  const redis = await RedisServer.start();
  const { options, environment } = one;
  const node = new TestNode(directory, redis.url, {
    options,
    environment: typeof environment === 'function' ? environment(directory) : environment,
  });
  const shared = sharedMemory();
  try {
    await node.start();
    await one.play({ ...given, node, directory });
    given.tally.judge(`${one.name}, at the end`, await leavings(node, shared));
  } catch (error) {
    given.tally.judge(one.name, [
      `${(error as Error).stack}\n${node.log().split('\n').slice(-20).join('\n')}`,
    ]);
  } finally {
    await node.stop();
    node.sweep();
    await node.ledger.close();
    await redis.remove();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Deletes every allocation and ends the node. @returns what is left */
async function leavings(node: TestNode, sharedBefore: readonly string[]): Promise<string[]> {
  const problems: string[] = [];
  for (const allocation of await node.list()) {
    const { memoryUsedBytes, sessions } = await node.until(
      allocation,
      (now) => now.sessions.length === 0,
    );
    if (memoryUsedBytes > 0) problems.push(`${memoryUsedBytes} bytes of quota are left behind`);
    if (sessions.length > 0) problems.push(`sessions are left behind: ${JSON.stringify(sessions)}`);
    else await node.delete(allocation);
  }
  if (!(await node.stop())) problems.push('gpu-proxy serve did not end when it was asked to');
  // An arbiter waits a minute for the next proxy, and may end between two looks.
  const workers = await lookUntil(
    () => node.processes().filter((pid) => pid !== node.arbiter()),
    (pids) => pids.length === 0,
  );
  problems.push(...workers.map((pid) => `process ${pid} is left behind`));
  const files = node.files().filter((name) => !FILES.includes(name));
  problems.push(...files.map((name) => `${name} is left behind`));
  const left = await newSharedMemory(sharedBefore);
  return [...problems, ...left.map((name) => `/dev/shm/${name} is left behind`)];
}
