import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { runChild } from '../child.js';
import { environmentFor } from '../cuda-program.js';
import { PATIENCE_MS, until } from '../processes.js';
import { type Case, type Scene, startTenant } from './scene.js';
import type { Tenant } from './tenant.js';

const SESSIONS = 64;
const ALLOCATIONS = 4;
const MIB = 2 ** 20;
/** Of an allocation. Its code can launch kernels, so each session reserves a heap of 8 MiB. */
const QUOTA = 256 * MIB;

export const sessions: Case = {
  name: 'sessions',
  about:
    '64 programs at once in several allocations; the 65th is refused with a message, ' +
    'and admitted after another has ended',
  async play(scene) {
    const { node, tally } = scene;
    const limits = { sessions: SESSIONS / ALLOCATIONS };
    const allocations = await Promise.all(
      Array.from({ length: ALLOCATIONS }, (_, i) =>
        node.create({ name: `tenant-${i}`, memoryBytes: QUOTA, sharePercent: 25, limits }),
      ),
    );
    const tenants = Array.from({ length: SESSIONS }, (_, i) =>
      startInBackground(scene, allocations[i % ALLOCATIONS] as never),
    );
    await judgeAll(scene, tenants, 'a program of 64');
    const counts = (await node.list()).map((allocation) => allocation.sessions.length);
    tally.judge(
      'sessions',
      counts.every((count) => count === limits.sessions)
        ? []
        : [`the allocations have ${counts.join(', ')}`],
    );
    await refused(scene, tenants);
    const ends = await Promise.all(tenants.map((tenant) => tenant.stop()));
    for (const problems of ends) tally.judge('the end of a program of 64', problems);
  },
};

/**
 * On a node, a program and its worker use the processor time of their pod, and gpu-proxy that of
 * its own. Here they share it, and 64 programs would leave too little to gpu-proxy.
 */
function startInBackground(scene: Scene, allocation: AllocationMessage): Tenant {
  const tenant = startTenant(scene, allocation, 'check');
  os.setPriority(tenant.pid, os.constants.priority.PRIORITY_LOW);
  return tenant;
}

async function judgeAll({ tally }: Scene, tenants: readonly Tenant[], what: string): Promise<void> {
  for (const problems of await Promise.all(tenants.map((tenant) => tenant.goesOn())))
    tally.judge(what, problems);
}

async function refused(scene: Scene, tenants: Tenant[]): Promise<void> {
  const { node, tally } = scene;
  const [allocation] = await node.list();
  if (!allocation) throw new Error('the allocation is gone');
  tally.judge('the 65th program', await refusedWith(scene, allocation.socketPath));
  const sentence =
    `all ${SESSIONS / ALLOCATIONS} sessions of allocation ${allocation.id} are in ` +
    `use. Wait until one ends`;
  tally.judge(
    'the log of the proxy',
    (await until(() => node.log().includes(sentence))) ? [] : [`it does not say: ${sentence}`],
  );
  await judgeAll(scene, tenants, 'a program beside one that was refused');

  tally.judge('the first program', await (tenants[0] as Tenant).stop());
  await node.until(allocation, (now) => now.sessions.length < SESSIONS / ALLOCATIONS);
  tenants[0] = startInBackground(scene, allocation);
  tally.judge('a program in the place of one that ended', await tenants[0].goesOn());
}

/** The program gets the reason of its refusal. */
async function refusedWith({ programs, directory }: Scene, socket: string): Promise<string[]> {
  const log = path.join(directory, 'refused');
  const env = { ...environmentFor(socket), CUDA_LOG_FILE: log };
  const { status, stderr } = await runChild(programs.quota, ['look'], {
    cwd: '/',
    env,
    seconds: PATIENCE_MS / 1000,
  });
  if (status === 0) return ['it was let in'];
  const said = readFileSync(log, 'utf8');
  return /cudaErrorNoDevice/.test(stderr) && said.includes(`all ${SESSIONS / ALLOCATIONS} sessions`)
    ? []
    : [`it heard: ${stderr} ${said}`];
}
