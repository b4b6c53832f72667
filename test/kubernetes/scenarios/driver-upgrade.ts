import { runCommand } from '@nvidia-virtual/toolchain/command';
import { lookUntil } from '../../processes.js';
import type { TestNode } from '../cluster/test-node.js';
import { readCommands } from '../page-commands.js';
import { tenantDeployment } from './pods.js';
import { driverUsers } from './processes.js';
import { change, partPods, SLOTS, untilOffered, userTools } from './product.js';
import type { NodeScenario, NodeScene } from './scene.js';

const REPLICAS = 2;
const STATE = 'nvidia.com/gpu-driver-upgrade-state';
/** There is no other node to which our other pods could move. */
const PODS = 'app.kubernetes.io/name!=nvidia-virtual';

/**
 * The test stands in for whoever upgrades the driver: an administrator with the commands of
 * docs/driver-upgrade.md, and then the GPU Operator with its labels.
 */
export const driverUpgrade: NodeScenario = {
  name: 'driver-upgrade',
  about: 'a drain, and driver upgrades by the commands of the page and by the operator',
  values: { 'node.warmWorkers': '1' },
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantDeployment('drained', REPLICAS, { slots: 2 }));
    await untilWorking(scene);
    tally.judge(
      'the test sees who uses the driver',
      driverUsers().length > 0 ? [] : ['nobody does'],
    );

    const { variables, blocks } = readCommands('driver-upgrade.md');
    const [drain = '', leave = '', back = ''] = blocks;
    const known = variables.join() === 'NODE,PODS' && blocks.length === 3;
    tally.judge('the page has the commands that the test knows', known ? [] : [blocks.join('\n')]);
    tally.judge('its drain', await commands(cluster, drain));
    tally.judge('ends all programs', await untilWaiting(scene));
    tally.judge('our pod leaves', await commands(cluster, leave));
    tally.judge('and nobody uses the driver', await untilUnused());
    tally.judge('our pod comes back', await commands(cluster, back));
    await untilOffered(cluster, SLOTS);
    await untilWorking(scene);

    const state = (value: string) =>
      cluster.kubectl('label', 'node', cluster.nodeName, `${STATE}=${value}`, '--overwrite');
    for (const value of ['upgrade-required', 'cordon-required']) await state(value);
    await cluster.kubectl('cordon', cluster.nodeName);
    await state('drain-required');
    tally.judge('the operator drains the node', await commands(cluster, drain));
    tally.judge('which ends all programs', await untilWaiting(scene));
    tally.judge('our pod stays until the node is drained', await presence(cluster, 1));
    await state('pod-restart-required');
    tally.judge('then it leaves', await presence(cluster, 0));
    tally.judge('and nobody uses the driver of the operator', await untilUnused());
    for (const value of ['upgrade-failed', 'validation-required']) await state(value);
    tally.judge('it stays away until the driver is valid', await presence(cluster, 0));
    await state('uncordon-required');
    await cluster.kubectl('uncordon', cluster.nodeName);
    await state('upgrade-done');
    await untilOffered(cluster, SLOTS);
    await untilWorking(scene);

    await cluster.kubectl('label', 'node', cluster.nodeName, `${STATE}-`);
    await tenants.delete('deployment', 'drained');
    await tenants.gone();
    await change(cluster, {}); // its warm worker ends
  },
};

/** Runs commands of the page as they stand. @returns their output if they fail */
async function commands(cluster: TestNode, block: string): Promise<string[]> {
  const values = { NODE: cluster.nodeName, PODS };
  const env = { ...process.env, ...userTools(cluster), ...values };
  const { status, output } = await runCommand('bash', ['-c', `set -ex\n${block}`], { env });
  return status === 0 ? [] : [output];
}

async function untilWorking({ tenants }: NodeScene): Promise<void> {
  await tenants.available('drained', REPLICAS);
  for (const { metadata, status } of await tenants.pods())
    if (status?.phase === 'Running') await tenants.logUntil(metadata?.name ?? '', 'working');
}

/** Waits until the Deployment has new pods, and none of them runs. @returns those that do */
async function untilWaiting({ tenants }: NodeScene): Promise<string[]> {
  const phases = async () => (await tenants.pods()).map(({ status }) => status?.phase ?? 'none');
  const areWaiting = (all: readonly string[]) =>
    all.length === REPLICAS && all.every((phase) => phase === 'Pending');
  const found = await lookUntil(phases, areWaiting);
  return areWaiting(found) ? [] : [`pods are ${found.join(', ')}`];
}

/** Waits until the node has this many pods of ours. */
async function presence(cluster: TestNode, wanted: number): Promise<string[]> {
  const count = async () => (await partPods(cluster, 'node')).length;
  const found = await lookUntil(count, (pods) => pods === wanted);
  return found === wanted ? [] : [`there are ${found} pods, and not ${wanted}`];
}

async function untilUnused(): Promise<string[]> {
  const left = await lookUntil(driverUsers, (users) => users.length === 0);
  return left.map((pid) => `process ${pid} uses the driver`);
}
